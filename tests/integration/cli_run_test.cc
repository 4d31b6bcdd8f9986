#include <csignal>
#include <fstream>

#include "integration/cli_any_store.h"
#include "support/http_client.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

struct SqlitePlace {
  TempDir dir{"cli-any"};
  int files = 0;
  std::string fresh() {
    return "sqlite:" + (dir / ("locks-" + std::to_string(++files) + ".db")).string();
  }
  static std::string absent() { return {}; }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sqlite, CliAnyStore, SqlitePlace);

class CliRun : public CliTest {
 protected:
  std::unique_ptr<Process> stopped_for_too_long(int signal, const std::string& script);
};

constexpr const char* kForEver = "echo ready; while :; do sleep 0.05; done";

// R, S, T, Z, …, or nothing if there is no such process.
std::string state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos ? "" : text.substr(name_end + 2, 1);
}

// One that has ended may wait for its parent to notice, but does nothing any more.
bool has_ended(pid_t pid) { return state_of(pid).empty() || state_of(pid) == "Z"; }

// Stops baton, or lets it stop itself with the command, until somebody else has had the lock. One
// that was stopped inside a transaction of SQLite would keep everybody out: then another one is.
std::unique_ptr<Process> CliRun::stopped_for_too_long(int signal, const std::string& script) {
  while (true) {
    auto process = hold("job", script, {"--ttl", "3s"});
    process->kill(signal);
    EXPECT_TRUE(poll_until([&] { return state_of(process->pid()) == "T"; }));
    if (baton({"run", "other", "--", "true"}).status.code != 0) continue;
    EXPECT_EQ(baton({"run", "job", "--wait", "1m", "--", "true"}).status.code, 0);
    return process;
  }
}

TEST_F(CliRun, the_exit_code_is_that_of_the_command) {
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"run", "job", "--", "sh", "-c", "exit 42"}).status.code, 42);
  EXPECT_EQ(baton({"run", "job", "--", "sh", "-c", "kill -TERM $$"}).status.code, 128 + SIGTERM);
  EXPECT_EQ(baton({"run", "job", "--", "sh", "-c", "kill -KILL $$"}).status.code, 128 + SIGKILL);
}

TEST_F(CliRun, a_command_that_cannot_be_started_is_told_as_a_shell_would) {
  refuses({"run", "job", "--", "no-such-command"}, 127, "not_found", "command not found");
  refuses({"run", "job", "--", "/no/such/command"}, 127, "not_found", "command not found");
  refuses({"run", "job", "--", dir_.path().string()}, 126, "cannot_execute", "not executable");
  std::ofstream(dir_ / "text") << "no program";
  refuses({"run", "job", "--", "./text"}, 126, "cannot_execute", "not executable");
}

TEST_F(CliRun, the_command_knows_its_lock) {
  const auto ran = baton({"run", "report/2026-11", "--mode", "shared", "--", "sh", "-c",
                          "echo $BATON_NAME $BATON_TOKEN $BATON_MODE ${#BATON_GRANT}"});
  EXPECT_EQ(ran.out, "DEFAULT:report:2026-11 1 shared 32\n") << ran.err;
  EXPECT_EQ(ran.err, "");
}

// For trying things out: what it is told and how it exits is the same, though nobody else sees it.
TEST_F(CliRun, a_lock_in_memory_is_a_lock_like_any_other) {
  env_["BATON_STORE"] = "sqlite:/proc/none.db";
  const auto in_memory = [&](const Words& command) {
    Words words{"run", "report/2026-11", "--store", "memory:", "--"};
    words.insert(words.end(), command.begin(), command.end());
    return baton(words);
  };
  EXPECT_EQ(in_memory({"true"}).status.code, 0);
  EXPECT_EQ(in_memory({"sh", "-c", "exit 42"}).status.code, 42);
  EXPECT_EQ(in_memory({"sh", "-c", "kill -TERM $$"}).status.code, 128 + SIGTERM);
  EXPECT_EQ(in_memory({"sh", "-c", "kill -KILL $$"}).status.code, 128 + SIGKILL);
  EXPECT_EQ(in_memory({dir_.path().string()}).status.code, 126);
  env_["BATON_STORE"] = "memory:";
  refuses({"run", "report", "--", "no-such-command"}, 127, "not_found", "command not found");
  const auto ran =
      in_memory({"sh", "-c", "echo $BATON_NAME $BATON_TOKEN $BATON_MODE ${#BATON_GRANT}"});
  EXPECT_EQ(ran.out, "DEFAULT:report:2026-11 1 exclusive 32\n") << ran.err;
  EXPECT_EQ(ran.err, "");
  auto process = hold("job", "trap 'echo got TERM; exit 5' TERM; " + std::string(kForEver));
  process->kill(SIGTERM);
  ends(*process, 5);
}

TEST_F(CliRun, the_store_is_not_passed_on) {
  env_["BATON_STORE"] = "";
  const auto ran =
      baton({"run", "job", "--store", store(), "--", "sh", "-c", "echo ${BATON_STORE:-nothing}"});
  EXPECT_EQ(ran.out, "nothing\n") << ran.err;
}

TEST_F(CliRun, standard_input_and_output_are_the_commands_own) {
  auto process = start({"run", "job", "--json", "--", "cat"});
  process->write("hello");
  process->close_stdin();
  ends(*process, 0);
  EXPECT_EQ(process->out(), "hello");
  EXPECT_EQ(process->err(), "");
}

TEST_F(CliRun,
       metrics_are_served_while_it_waits_and_runs_and_the_command_does_not_inherit_the_port) {
  auto holder = hold("job", kForEver);
  auto process = start({"run", "job", "--wait", "1m", "--metrics", "127.0.0.1:0", "--", "sh", "-c",
                        "echo ready; ls -l /proc/self/fd; read _"});
  constexpr std::string_view kSaid = "metrics on http://127.0.0.1:";
  ASSERT_TRUE(process->wait_for_err("/metrics\n")) << process->err();
  const std::string err = process->err();
  const int port = std::atoi(err.c_str() + err.find(kSaid) + kSaid.size());
  const auto shows = [&](const std::string& line) {
    return poll_until([&] {
      const auto answer = http(port, {.path = "/metrics"});
      return answer && answer->body.find("\nbaton_lock_" + line + "\n") != std::string::npos;
    });
  };
  EXPECT_TRUE(shows(R"(queue_length{predicate="holding",subject="job"} 1)"));
  holder->kill(SIGTERM);
  ASSERT_TRUE(process->wait_for_out("ready"));
  EXPECT_TRUE(shows(R"(active{predicate="holding",subject="job"} 1)"));
  EXPECT_EQ(process->out().find("socket:"), std::string::npos) << process->out();
  EXPECT_EQ(http(port, {.path = "/healthz"})->status, 200);
  process->close_stdin();
  ASSERT_TRUE(process->wait());
}

TEST_F(CliRun, a_bad_address_for_metrics_is_refused_before_anything_runs) {
  refuses({"run", "job", "--metrics", "9464", "--", "touch", "ran"}, 2, "bad_request",
          "write IP:PORT");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
}

TEST_F(CliRun, which_port_has_the_metrics_is_told_in_json_too) {
  const auto ran = baton({"run", "job", "--json", "--metrics", "127.0.0.1:0", "--", "true"});
  EXPECT_EQ(ran.err.rfind(R"({"event":"metrics","url":"http://127.0.0.1:)", 0), 0U) << ran.err;
  EXPECT_TRUE(ran.err.ends_with("/metrics\"}\n")) << ran.err;
}

TEST_F(CliRun, a_busy_lock_is_75_and_says_who_holds_it) {
  auto holder = hold("job", kForEver, {"--owner", "somebody"});
  refuses({"run", "job", "--", "true"}, 75, "busy", "somebody");
  refuses({"run", "job", "--wait", "50ms", "--", "true"}, 75, "timed_out", "somebody");
  EXPECT_EQ(baton({"run", "other", "--", "true"}).status.code, 0);
}

TEST_F(CliRun, a_waiting_run_starts_when_the_lock_is_free) {
  auto first = hold("job", "echo ready; read line");
  auto second = start({"run", "job", "--wait", "1m", "--", "echo", "second"});
  EXPECT_TRUE(poll_until([&] {
    return baton({"lock", "show", "job"}).out.find("1 waiting") != std::string::npos;
  }));
  EXPECT_EQ(second->out(), "");
  first->write("\n");
  ends(*first, 0);
  ends(*second, 0);
  EXPECT_EQ(second->out(), "second\n");
}

TEST_F(CliRun, runs_of_one_name_exclude_each_other) {
  // mkdir fails if the directory is there: two at a time would show.
  const std::string script = "mkdir inside && sleep 0.05 && rmdir inside";
  std::vector<std::unique_ptr<Process>> all;
  for (int i = 0; i < 6; ++i) {
    all.push_back(start({"run", "job", "--wait", "1m", "--", "sh", "-c", script}));
  }
  for (auto& process : all) ends(*process, 0);
}

TEST_F(CliRun, shared_runs_go_together) {
  auto first = hold("schema", kForEver, {"--mode", "shared"});
  EXPECT_EQ(baton({"run", "schema", "--mode", "shared", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"run", "schema", "--", "true"}).status.code, 75);
}

TEST_F(CliRun, the_lock_is_free_when_the_command_has_ended) {
  EXPECT_EQ(baton({"run", "job", "--ttl", "24h", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliRun, at_least_for_keeps_it_taken) {
  EXPECT_EQ(baton({"run", "job", "--at-least-for", "1h", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 75);
}

TEST_F(CliRun, a_command_that_does_not_exist_does_not_take_the_lock) {
  EXPECT_EQ(baton({"run", "job", "--at-least-for", "1h", "--", "no-such-command"}).status.code,
            127);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliRun, signals_are_passed_on_and_the_lock_released) {
  for (const auto& [number, name] : std::map<int, std::string>{{SIGINT, "INT"},
                                                               {SIGTERM, "TERM"},
                                                               {SIGHUP, "HUP"},
                                                               {SIGQUIT, "QUIT"},
                                                               {SIGUSR1, "USR1"},
                                                               {SIGUSR2, "USR2"}}) {
    auto process = hold("job", "trap 'echo got " + name + "; exit 5' " + name +
                                   "; echo ready; while :; do sleep 0.02; done");
    process->kill(number);
    ends(*process, 5);
    EXPECT_NE(process->out().find("got " + name), std::string::npos);
    EXPECT_EQ(process->err(), "");
    EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0) << name;
  }
}

TEST_F(CliRun, a_signal_ends_the_wait) {
  auto holder = hold("job", kForEver);
  auto waiter = start({"run", "job", "--wait", "1h", "--", "echo", "never"});
  const auto waiting = [&] {
    return baton({"lock", "show", "job"}).out.find("1 waiting") != std::string::npos;
  };
  EXPECT_TRUE(poll_until(waiting));
  waiter->kill(SIGTERM);
  ends(*waiter, 128 + SIGTERM);
  EXPECT_EQ(waiter->out(), "");
  EXPECT_TRUE(poll_until([&] { return !waiting(); })) << "it left the queue";
}

TEST_F(CliRun, a_broken_lock_ends_the_command_with_76) {
  auto process = hold("job",
                      "trap 'echo told; exit 0' TERM; echo ready; "
                      "while :; do sleep 0.02; done");
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "maintenance", "--now"}).status.code, 0);
  ends(*process, 76);
  EXPECT_NE(process->out().find("told"), std::string::npos);
  EXPECT_NE(process->err().find("baton: lost the lock job ("), std::string::npos) << process->err();
}

TEST_F(CliRun, a_break_waits_until_the_command_is_gone_and_no_longer) {
  auto process = hold("job", kForEver, {"--ttl", "1h"});
  const auto broken = baton({"lock", "break", "job", "--reason", "maintenance"});
  EXPECT_EQ(broken.status.code, 0) << broken.err;
  ends(*process, 76);
  EXPECT_NE(process->err().find("maintenance"), std::string::npos) << process->err();
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliRun, what_ignores_the_loss_is_killed_with_all_its_descendants) {
  auto process = hold("job",
                      "trap '' TERM; (trap '' TERM; setsid sleep 1000 & echo $! > orphan; wait) & "
                      "while [ ! -s orphan ]; do sleep 0.01; done; echo ready; "
                      "while :; do sleep 0.02; done",
                      {"--ttl", "5s", "--grace", "100ms"});
  pid_t orphan = 0;
  std::ifstream(dir_ / "orphan") >> orphan;
  ASSERT_GT(orphan, 0);
  EXPECT_FALSE(has_ended(orphan));
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "r", "--now"}).status.code, 0);
  ends(*process, 76);
  EXPECT_TRUE(has_ended(orphan)) << "it would still write";
}

TEST_F(CliRun, a_killed_baton_takes_the_command_with_it) {
  auto process = hold("job", "echo $$ > pid; echo ready; while :; do sleep 0.02; done");
  pid_t pid = 0;
  std::ifstream(dir_ / "pid") >> pid;
  ASSERT_GT(pid, 0);
  process->kill(SIGKILL);
  EXPECT_TRUE(process->wait());
  EXPECT_TRUE(poll_until([&] { return has_ended(pid); }));
}

TEST_F(CliRun, a_stopped_baton_stops_the_command_and_both_go_on) {
  auto process = hold("job", "echo $$ > pid; echo ready; read line; echo done");
  pid_t pid = 0;
  std::ifstream(dir_ / "pid") >> pid;
  process->kill(SIGTSTP);
  EXPECT_TRUE(poll_until([&] { return state_of(pid) == "T"; }));
  EXPECT_TRUE(poll_until([&] { return state_of(process->pid()) == "T"; }));
  process->kill(SIGCONT);
  EXPECT_TRUE(poll_until([&] { return state_of(pid) == "S"; }));
  process->write("\n");
  ends(*process, 0);
}

TEST_F(CliRun, a_baton_that_was_stopped_past_its_lock_gives_the_command_no_grace) {
  auto process = stopped_for_too_long(
      SIGSTOP, "trap 'echo told' TERM; echo ready; while :; do sleep 0.02; done");
  process->kill(SIGCONT);
  ends(*process, 76);
  EXPECT_EQ(process->out(), "ready\n") << "it ran on beside the next holder";
}

TEST_F(CliRun, a_command_that_was_stopped_past_its_lock_never_runs_again) {
  auto process = stopped_for_too_long(SIGTSTP,
                                      "trap '' TERM; echo beat > beats; echo ready; "
                                      "while :; do echo beat >> beats; sleep 0.01; done");
  const auto beats = std::filesystem::file_size(dir_ / "beats");
  process->kill(SIGCONT);
  ends(*process, 76);
  EXPECT_EQ(std::filesystem::file_size(dir_ / "beats"), beats);
}

TEST_F(CliRun, a_command_that_may_not_be_ended_is_told_of_and_does_not_hold_up_for_ever) {
  if (geteuid() != 0) return;  // only root can make a process of another user
  auto with =
      options({"run", "job", "--ttl", "1s", "--", "setpriv", "--reuid=65534", "--clear-groups",
               "sh", "-c", "echo $$ ready; exec > /dev/null 2>&1; while :; do sleep 0.02; done"});
  // Without this right root is a user like any other.
  with.argv.insert(with.argv.begin(), {"setpriv", "--bounding-set=-kill", "--inh-caps=-kill"});
  Process process(with);
  ASSERT_TRUE(process.wait_for_out("ready")) << process.err();
  const pid_t pid = std::atoi(process.out().c_str());
  ASSERT_GT(pid, 0);
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "r", "--now"}).status.code, 0);
  ends(process, 76);
  EXPECT_FALSE(has_ended(pid));
  ::kill(pid, SIGKILL);
  const std::string err = process.err();
  const std::string told = "may not signal process " + std::to_string(pid);
  EXPECT_NE(err.find(told), std::string::npos) << err;
  EXPECT_EQ(err.find(told), err.rfind(told)) << "once";
  EXPECT_NE(err.find("the command could not be ended"), std::string::npos) << err;
}

TEST_F(CliRun, metadata_is_seen_by_others) {
  auto process = hold("job", kForEver, {"--metadata", "ticket=42", "--metadata", "why=a=b"});
  const auto shown = baton({"lock", "show", "job"});
  EXPECT_NE(shown.out.find("ticket=42, why=a=b"), std::string::npos) << shown.out;
}

}  // namespace
}  // namespace baton::test
