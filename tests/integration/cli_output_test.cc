// What the command says of itself, and how: help, version, colours, output that cannot be written.

#include <set>

#include "integration/cli_support.h"

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
                                             "elect",
                                             "leader",
                                             "leader show",
                                             "leader resign",
                                             "leader transfer",
                                             "lock",
                                             "lock find",
                                             "lock show",
                                             "lock break",
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
                                             "job pause",
                                             "job resume",
                                             "job run",
                                             "job skip",
                                             "job forget",
                                             "node",
                                             "node list",
                                             "version",
                                             "completion"}));
}

TEST_F(CliOutput, help_names_every_store_that_there_is) {
  // "…; there are memory:, sqlite:, … and k8s://"
  const auto refused = baton({"lock", "find", "--store", "nonsense:"}).err;
  std::istringstream words(refused.substr(refused.find("there are ")));
  const std::string about = help({"lock", "find"}).text;
  int stores = 0;
  for (std::string word; words >> word;) {
    const auto colon = word.find(':');
    if (colon == std::string::npos) continue;
    ++stores;
    EXPECT_NE(about.find(word.substr(0, colon + 1)), std::string::npos) << word << about;
  }
  EXPECT_EQ(stores, 7) << refused;
}

TEST_F(CliOutput, the_version_is_a_line_or_a_document) {
  const auto text = baton({"version"});
  EXPECT_EQ(text.status.code, 0);
  ASSERT_EQ(text.out.rfind("baton ", 0), 0U) << text.out;
  const std::string number = text.out.substr(6, text.out.size() - 7);
  EXPECT_EQ(number, BATON_VERSION);
  EXPECT_EQ(baton({"version", "--json"}).out, "{\"version\":\"" + number + "\"}\n");
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
