// What the command says of itself, and how: help, version, colours, output that cannot be written.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <set>

#include "integration/cli/cli_support.h"

namespace baton::test {
namespace {

constexpr const char* kForEver = "echo ready; while :; do sleep 0.05; done";

class CliOutput : public CliTest {
 protected:
  static std::string joined(const Words& words) {
    std::string out;
    for (const auto& word : words) out += (out.empty() ? "" : " ") + word;
    return out;
  }

  // A terminal at which this is typed; its output is what the terminal is sent.
  ProcessOptions typed(const std::string& words) const {
    ProcessOptions made = options({});
    made.env["SHELL"] = "/bin/sh";
    made.argv = {"script", "-qec", "'" BATON_PROGRAM "' " + words, "/dev/null"};
    return made;
  }
  std::string on_terminal(const std::string& words) const { return run(typed(words)).out; }
};

// --- help ----------------------------------------------------------------------------------------

TEST_F(CliOutput, every_command_has_help_with_examples_of_its_own) {
  std::set<std::string> commands;
  for (const Help& help : all_help()) {
    const std::string command = joined(help.command);
    commands.insert(command);
    EXPECT_NE(help.text.find("Usage: baton"), std::string::npos) << help.text;
    const auto examples = help.text.find("Examples:\n  ");
    ASSERT_NE(examples, std::string::npos) << help.text;
    EXPECT_NE(help.text.find("baton " + command, examples), std::string::npos) << help.text;
    EXPECT_EQ(help.text.find("\n\n\n"), std::string::npos) << help.text;
  }
  EXPECT_EQ(commands, (std::set<std::string>{"",
                                             "run",
                                             "hold",
                                             "elect",
                                             "leader",
                                             "leader show",
                                             "leader is-me",
                                             "leader resign",
                                             "leader transfer",
                                             "cron",
                                             "lock",
                                             "lock find",
                                             "lock list",
                                             "lock show",
                                             "lock break",
                                             "lock forget",
                                             "lock stats",
                                             "fence",
                                             "fence check",
                                             "fence rebase",
                                             "fence install",
                                             "store",
                                             "store migrate",
                                             "store status",
                                             "store doctor",
                                             "policy",
                                             "policy check",
                                             "policy apply",
                                             "policy show",
                                             "job",
                                             "job list",
                                             "job show",
                                             "job history",
                                             "job pause",
                                             "job resume",
                                             "job run",
                                             "job skip",
                                             "job forget",
                                             "node",
                                             "node list",
                                             "partition",
                                             "partition list",
                                             "outbox",
                                             "outbox install",
                                             "outbox status",
                                             "outbox list",
                                             "outbox show",
                                             "outbox retry",
                                             "outbox discard",
                                             "outbox clean",
                                             "inbox",
                                             "inbox install",
                                             "inbox status",
                                             "inbox list",
                                             "inbox show",
                                             "dlq",
                                             "dlq list",
                                             "dlq show",
                                             "dlq redrive",
                                             "dlq discard",
                                             "dlq export",
                                             "processor",
                                             "processor install",
                                             "processor list",
                                             "processor show",
                                             "processor pause",
                                             "processor resume",
                                             "processor reset",
                                             "processor rebuild",
                                             "topology",
                                             "topology plan",
                                             "topology apply",
                                             "topology check",
                                             "queue",
                                             "queue list",
                                             "broker",
                                             "broker doctor",
                                             "relay",
                                             "help",
                                             "version",
                                             "completion"}));
}

TEST_F(CliOutput, help_names_every_store_that_a_command_can_use) {
  // "…; there are memory:, sqlite:, … and k8s://"
  const auto refused = baton({"lock", "find", "--store", "nonsense:"}).err;
  std::istringstream words(refused.substr(refused.find("there are ")));
  const std::string about = help({"lock", "find"}).text;
  int stores = 0;
  for (std::string word; words >> word;) {
    const auto colon = word.find(':');
    if (colon == std::string::npos || word.starts_with("memory:")) continue;
    ++stores;
    EXPECT_NE(about.find(word.substr(0, colon + 1)), std::string::npos) << word << about;
  }
  EXPECT_EQ(stores, 6) << refused;
}

TEST_F(CliOutput, the_version_is_a_line_or_a_document) {
  const auto text = baton({"version"});
  EXPECT_EQ(text.status.code, 0);
  ASSERT_EQ(text.out.rfind("baton ", 0), 0U) << text.out;
  const std::string number = text.out.substr(6, text.out.size() - 7);
  EXPECT_EQ(number, BATON_VERSION);
  EXPECT_EQ(baton({"version", "--json"}).out, "{\"version\":\"" + number + "\"}\n");
}

TEST_F(CliOutput, the_version_is_also_an_option) {
  for (const auto* option : {"--version", "-V"}) {
    const auto told = baton({option});
    EXPECT_EQ(told.status.code, 0) << told.err;
    EXPECT_EQ(told.out, "baton " BATON_VERSION "\n");
    EXPECT_EQ(baton({option, "--json"}).out, "{\"version\":\"" BATON_VERSION "\"}\n");
  }
}

TEST_F(CliOutput, the_word_help_gives_the_same_as_the_option) {
  EXPECT_EQ(baton({"help"}).out, help({}).text);
  EXPECT_EQ(baton({"help", "run"}).out, help({"run"}).text);
  EXPECT_EQ(baton({"help", "lock", "find"}).out, help({"lock", "find"}).text);
  refuses({"help", "lock", "fnid"}, 2, "usage", "did you mean 'find'?");
}

TEST_F(CliOutput, help_is_in_the_words_of_the_command_and_fits_a_terminal) {
  for (const Help& help : all_help()) {
    for (const auto* noise : {"TEXT", "INT", "UINT", "FLOAT", "BOOLEAN", " ...", "TIME="}) {
      // "-- CMD [ARG...]" and "--reason TEXT" are meant so.
      if (help.text.find("--reason") != std::string::npos && std::string(noise) == "TEXT") continue;
      EXPECT_EQ(help.text.find(noise), std::string::npos) << noise << "\n" << help.text;
    }
    std::istringstream lines(help.text);
    for (std::string line; std::getline(lines, line);) {
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
      });
      EXPECT_LE(columns, 100) << line;
    }
  }
}

// --- colours -------------------------------------------------------------------------------------

TEST_F(CliOutput, a_terminal_gets_colours_of_results_and_of_errors) {
  env_["TERM"] = "xterm";
  env_["NO_COLOR"] = "";  // as if it were not set
  auto holder = hold("job", kForEver);
  const std::string found = on_terminal("lock find");
  EXPECT_NE(found.find("\x1b[1mNAME"), std::string::npos) << found;
  const std::string refused = on_terminal("lock fnid");
  EXPECT_NE(refused.find("\x1b[31mbaton:\x1b[0m unknown command"), std::string::npos) << refused;
}

TEST_F(CliOutput, a_terminal_is_told_what_a_command_waits_for) {
  // It takes connections and never says a word, as a server that is stopped.
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(silent, 8), 0);
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const std::string place = "@127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/shop";
  const std::string out = on_terminal(
      "lock break job --reason tired --timeout 2s --store "
      "postgres://me:hush" +
      place);
  EXPECT_NE(out.find("waiting for postgres://me:***" + place + ", for 2s at most"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("in time"), std::string::npos) << out;
  close(silent);
}

TEST_F(CliOutput, who_wants_no_colours_gets_none_on_a_terminal_either) {
  auto holder = hold("job", kForEver);
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"NO_COLOR", "1"}, {"TERM", "dumb"}}) {
    env_ = {{"TERM", "xterm"}, {"NO_COLOR", ""}};
    env_[name] = value;
    const std::string found = on_terminal("lock find");
    EXPECT_NE(found.find("NAME"), std::string::npos) << found;
    EXPECT_EQ(found.find('\x1b'), std::string::npos) << name << ": " << found;
    const std::string refused = on_terminal("lock fnid");
    EXPECT_NE(refused.find("baton: unknown command"), std::string::npos) << refused;
    EXPECT_EQ(refused.find('\x1b'), std::string::npos) << name << ": " << refused;
  }
}

TEST_F(CliOutput, what_is_not_a_terminal_gets_no_colours) {
  env_ = {{"TERM", "xterm"}, {"NO_COLOR", ""}};
  auto holder = hold("job", kForEver);
  EXPECT_EQ(baton({"lock", "find"}).out.find('\x1b'), std::string::npos);
  EXPECT_EQ(baton({"lock", "fnid"}).err.find('\x1b'), std::string::npos);
  // Each stream by itself: the one is piped, the other is not.
  EXPECT_EQ(on_terminal("lock find | cat").find('\x1b'), std::string::npos);
  EXPECT_NE(on_terminal("lock find 2>/dev/null").find('\x1b'), std::string::npos);
  EXPECT_EQ(on_terminal("lock fnid 2>&1 | cat").find('\x1b'), std::string::npos);
  EXPECT_NE(on_terminal("lock fnid | cat").find('\x1b'), std::string::npos);
  // Programs read JSON, wherever it goes.
  EXPECT_EQ(on_terminal("lock find --json").find('\x1b'), std::string::npos);
  EXPECT_EQ(on_terminal("lock fnid --json").find('\x1b'), std::string::npos);
}

TEST_F(CliOutput, progress_replaces_itself_only_on_a_terminal_that_can) {
  auto holder = hold("job", kForEver, {"--ttl", "1h"});
  ASSERT_TRUE(stop_still(holder->pid()));
  const std::string breaks = "lock break job --reason r";
  env_ = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
  Process clever(typed(breaks));
  EXPECT_TRUE(clever.wait_for_out("\r\x1b[Kwaiting for ")) << clever.out();
  env_["TERM"] = "dumb";
  Process dumb(typed(breaks));
  EXPECT_TRUE(dumb.wait_for_out("waiting for ")) << dumb.out();
  EXPECT_EQ(dumb.out().find('\x1b'), std::string::npos) << dumb.out();
}

// --- the size of a terminal ----------------------------------------------------------------------

TEST_F(CliOutput, a_list_fits_a_terminal_of_80_columns) {
  env_ = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
  auto one = hold("nightly-report", kForEver, {"--owner", "reports-5d7f9c-abcde:1234567"});
  auto other = hold("page/fs-abc123/a-document-with-a-long-name/and-a-page-of-it", kForEver,
                    {"--owner", "web-1.eu-central-1.example.com:4711"});
  auto narrow = typed("lock list");
  narrow.argv[2] = "stty rows 24 cols 80; " + narrow.argv[2];
  const std::string seen = run(narrow).out;
  EXPECT_NE(seen.find("nightly-report"), std::string::npos) << seen;
  EXPECT_NE(seen.find("page/fs-abc123/"), std::string::npos) << seen;
  EXPECT_NE(seen.find("…"), std::string::npos) << seen;
  std::istringstream lines(seen);
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of('\r') + 1);
    const auto characters = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0U) != 0x80;
    });
    EXPECT_LE(characters, 80) << line;
  }
  const auto piped = baton({"lock", "list"}).out;
  EXPECT_NE(piped.find("web-1.eu-central-1.example.com:4711"), std::string::npos) << piped;
}

TEST_F(CliOutput, a_line_of_progress_that_does_not_fit_is_cut_where_one_can_see_it) {
  auto holder = hold("job", kForEver, {"--owner", "web-1.eu-central-1.example.com:4711"});
  env_ = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
  auto narrow = typed("run job --wait 1h -- true");
  narrow.argv[2] = "stty rows 24 cols 40; " + narrow.argv[2];
  Process waiting(narrow);
  EXPECT_TRUE(waiting.wait_for_out("waiting for job, held by web-1.eu-cent…")) << waiting.out();
}

TEST_F(CliOutput, a_list_that_is_watched_does_not_scroll) {
  env_ = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
  std::vector<std::unique_ptr<Process>> holders;
  for (const auto* name : {"a", "b", "c", "d"}) holders.push_back(hold(name, kForEver));
  auto small = typed("lock list --watch");
  small.argv[2] = "stty rows 4 cols 80; " + small.argv[2];
  Process watching(small);
  const std::string clear = "\x1b[H\x1b[J";
  ASSERT_TRUE(poll_until([&] {
    const std::string out = watching.out();
    return out.find(clear, out.find(clear) + 1) != std::string::npos;
  })) << watching.out();
  const std::string out = watching.out();
  const auto begin = out.find(clear);
  const std::string first = out.substr(begin, out.find(clear, begin + 1) - begin);
  EXPECT_EQ(std::count(first.begin(), first.end(), '\n'), 3) << first;
  EXPECT_NE(first.find("… and 3 more"), std::string::npos) << first;
}

// --- the default store ---------------------------------------------------------------------------

TEST_F(CliOutput, what_the_default_store_locks_is_said_on_a_terminal_and_else_only_once) {
  const std::string says = "locks the processes of this user on this machine";
  env_ = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
  unset_store();
  const auto first = baton({"run", "job", "--", "true"});
  EXPECT_NE(first.err.find(says), std::string::npos) << first.err;
  EXPECT_EQ(first.err.find('\n'), first.err.size() - 1) << "one line: " << first.err;
  const std::string seen = on_terminal("run job -- true");
  EXPECT_NE(seen.find(says), std::string::npos) << seen;
  EXPECT_NE(seen.find("BATON_STORE"), std::string::npos) << seen;
  EXPECT_EQ(baton({"run", "job", "--", "true"}).err, "");
  EXPECT_EQ(on_terminal("run job --json -- true"), "");
  EXPECT_EQ(on_terminal("run job --quiet -- true"), "");
  env_["BATON_STORE"] = store();
  EXPECT_EQ(on_terminal("run job -- true"), "");
}

// --- characters that cannot be seen --------------------------------------------------------------

TEST_F(CliOutput, what_cannot_be_seen_or_turns_text_around_is_escaped) {
  // Without the escapes the first owner would look as "admin", the second as "web".
  auto first = hold("job/\u202Enimda", kForEver, {"--owner", "\u2066web\u2069\u200E\u200F\u061C"});
  auto second = hold("job/we\u200Bb", kForEver, {"--owner", "\u2028\u2029\uFEFF\u00AD\U000E0041"});
  const std::string found = baton({"lock", "find"}).out;
  EXPECT_NE(found.find("job/\\u202enimda "), std::string::npos) << found;
  EXPECT_NE(found.find(" \\u2066web\\u2069\\u200e\\u200f\\u061c "), std::string::npos) << found;
  EXPECT_NE(found.find("job/we\\u200bb "), std::string::npos) << found;
  EXPECT_NE(found.find(" \\u2028\\u2029\\ufeff\\u00ad\\ue0041 "), std::string::npos) << found;
  const std::string busy = baton({"run", "job/\u202Enimda", "--", "true"}).err;
  EXPECT_NE(busy.find("job/\\u202enimda is busy"), std::string::npos) << busy;
  EXPECT_EQ(baton({"run", "a\xff", "--", "true"}).err.find('\xff'), std::string::npos);
  // Letters of every script are left as they are.
  auto third = hold("job/отчёт-報告-\u0627", kForEver);
  EXPECT_NE(baton({"lock", "find"}).out.find("job/отчёт-報告-\u0627"), std::string::npos);
}

TEST_F(CliOutput, a_run_that_waits_says_on_a_terminal_for_whom_and_which_place_it_has) {
  auto holder = hold("job", kForEver, {"--owner", "web-2"});
  env_ = {{"TERM", "xterm"}, {"NO_COLOR", "1"}};
  const std::string waits = "run job --wait 1h";
  Process first(typed(waits + " -- echo done"));
  EXPECT_TRUE(first.wait_for_out("\r\x1b[Kwaiting for job, held by web-2, 1st in line"))
      << first.out();
  Process second(typed(waits + " -- echo done"));
  EXPECT_TRUE(second.wait_for_out("waiting for job, held by web-2, 2nd in line")) << second.out();
  auto quiet = start({"run", "job", "--wait", "1h", "--", "echo", "done"});
  Process told_not_to(typed(waits + " --quiet -- echo done"));
  EXPECT_TRUE(poll_until([&] {
    return baton({"lock", "show", "job", "--json"}).out.find("\"waiting\":4") != std::string::npos;
  }));
  holder->kill(SIGTERM);
  ASSERT_TRUE(first.wait());
  EXPECT_TRUE(first.out().ends_with("\r\x1b[Kdone\r\n")) << "the line is gone: " << first.out();
  ASSERT_TRUE(quiet->wait() && told_not_to.wait());
  EXPECT_EQ(quiet->err(), "") << "no terminal, no word";
  EXPECT_EQ(told_not_to.out(), "done\r\n");
}

// --- output that cannot be written ---------------------------------------------------------------

TEST_F(CliOutput, that_cannot_be_written_is_an_error) {
  const auto full =
      run({.argv = {"sh", "-c", std::string(BATON_PROGRAM) + " version > /dev/full"}});
  EXPECT_EQ(full.status.code, 1);
  EXPECT_NE(full.err.find("cannot write"), std::string::npos);
  // Longer than a buffer, so that it fails before the end.
  const auto early = run(
      {.argv = {"sh", "-c", std::string(BATON_PROGRAM) + " completion zsh --json > /dev/full"}});
  EXPECT_EQ(early.status.code, 1);
  EXPECT_EQ(early.err.rfind("{\"error\":{\"code\":\"error\",\"message\":\"", 0), 0U) << early.err;
}

}  // namespace
}  // namespace baton::test
