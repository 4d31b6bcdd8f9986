#include <csignal>
#include <fstream>

#include "integration/cli/cli_any_store.h"
#include "support/http_client.h"
#include "support/loopback.h"
#include "support/privileges.h"

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
  std::unique_ptr<Process> stopped_for_too_long(int signal, const std::string& script,
                                                const std::string& ttl = "3s");

  pid_t pid_in(const std::string& file) const {
    pid_t pid = 0;
    std::ifstream(dir_ / file) >> pid;
    EXPECT_GT(pid, 0) << file;
    return pid;
  }
  void expect_family_ends() const;
};

// Of a command: writes the process ids of itself, a grandchild that ignores SIGTERM, and a daemon
// that was forked twice and has a session of its own; then it says "ready".
constexpr const char* kFamily =
    "sh -c 'trap \"\" TERM; echo $$ > grandchild; while :; do sleep 0.02; done' & "
    "setsid sh -c '(trap \"\" TERM; exec sh -c \"echo \\$\\$ > daemon; "
    "while :; do sleep 0.02; done\") & exit 0'; "
    "while [ ! -s grandchild ] || [ ! -s daemon ]; do sleep 0.01; done; "
    "echo $$ > command; echo ready; while :; do sleep 0.02; done";

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

pid_t only_child_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  pid_t child = 0;
  file >> child;
  return child;
}

// Stops baton, or lets it stop itself with the command, until somebody else has had the lock. One
// that was stopped inside a transaction of SQLite would keep everybody out: then another one is.
std::unique_ptr<Process> CliRun::stopped_for_too_long(int signal, const std::string& script,
                                                      const std::string& ttl) {
  while (true) {
    auto process = hold("job", script, {"--ttl", ttl});
    process->kill(signal);
    EXPECT_TRUE(poll_until([&] { return state_of(process->pid()) == "T"; }));
    if (baton({"run", "other", "--", "true"}).status.code != 0) continue;
    EXPECT_EQ(baton({"run", "job", "--wait", "1m", "--", "true"}).status.code, 0);
    return process;
  }
}

void CliRun::expect_family_ends() const {
  for (const auto* member : {"command", "grandchild", "daemon"}) {
    const pid_t pid = pid_in(member);
    EXPECT_TRUE(poll_until([&] { return has_ended(pid); })) << member;
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
  EXPECT_EQ(ran.out, "DEFAULT:report:2026-11 1 S 32\n") << ran.err;
  EXPECT_EQ(ran.err, "");
}

TEST_F(CliRun, the_store_is_not_passed_on) {
  unset_store();
  const auto ran =
      baton({"run", "job", "--store", store(), "--", "sh", "-c", "echo ${BATON_STORE:-nothing}"});
  EXPECT_EQ(ran.out, "nothing\n") << ran.err;
}

TEST_F(CliRun, a_password_in_baton_store_is_not_handed_to_the_command) {
  // The store is another one, so that none with a password is needed.
  env_["BATON_STORE"] = "postgres://app:s3cret@db/locks?application_name=x&password=s3cret";
  const auto ran = baton({"run", "job", "--store", store(), "--", "env"});
  EXPECT_EQ(ran.status.code, 0) << ran.err;
  EXPECT_EQ(ran.out.find("s3cret"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("BATON_STORE=postgres://app:***@db/locks?application_name=x&password=***"),
            std::string::npos)
      << ran.out << "a baton below would lock elsewhere without it";
  env_["BATON_STORE"] = store();
  EXPECT_EQ(baton({"run", "job", "--", "sh", "-c", "echo $BATON_STORE"}).out, store() + "\n");
}

TEST_F(CliRun, a_relative_store_means_the_same_file_after_the_command_changes_its_directory) {
  env_["BATON_STORE"] = "sqlite:locks.db";
  const std::string same = "mkdir sub; cd sub; " + program_ + " run job -- true";
  EXPECT_EQ(baton({"run", "job", "--", "sh", "-c", same}).status.code, 75) << "it is held";
  EXPECT_FALSE(std::filesystem::exists(dir_ / "sub/locks.db"));
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

TEST_F(CliRun, metrics_that_others_reach_are_warned_about) {
  const auto ran = baton({"run", "job", "--metrics", "0.0.0.0:0", "--", "true"});
  EXPECT_EQ(ran.status.code, 0);
  EXPECT_EQ(ran.err.rfind("baton: warning: everybody who reaches http://0.0.0.0:", 0), 0U)
      << ran.err;
  const auto told = baton({"run", "job", "--json", "--metrics", "0.0.0.0:0", "--", "true"});
  EXPECT_EQ(told.err.rfind(R"({"event":"warning",)", 0), 0U) << told.err;
}

TEST_F(CliRun, a_busy_lock_is_75_and_says_who_holds_it) {
  auto holder = hold("job", kForEver, {"--owner", "somebody"});
  refuses({"run", "job", "--", "true"}, 75, "busy", "somebody");
  refuses({"run", "job", "--wait", "50ms", "--", "true"}, 75, "timed_out", "somebody");
  EXPECT_EQ(baton({"run", "other", "--", "true"}).status.code, 0);
}

TEST_F(CliRun, the_exit_code_for_a_busy_lock_can_be_chosen) {
  auto holder = hold("job", kForEver);
  refuses({"run", "job", "--busy-exit-code", "0", "--", "touch", "ran"}, 0, "busy", "job is busy");
  refuses({"run", "job", "--busy-exit-code", "9", "--wait", "10ms", "--", "touch", "ran"}, 9,
          "timed_out", "was not free within 10ms");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
  refuses({"run", "job", "--busy-exit-code", "256", "--", "true"}, 2, "usage", "--busy-exit-code");
  EXPECT_EQ(
      baton({"run", "other", "--busy-exit-code", "9", "--", "sh", "-c", "exit 3"}).status.code, 3);
}

TEST_F(CliRun, a_quiet_run_says_nothing_of_a_busy_lock_but_still_of_errors) {
  auto holder = hold("job", kForEver);
  for (const auto* wait : {"0s", "10ms"}) {
    const auto ran = baton({"run", "job", "--quiet", "--wait", wait, "--", "touch", "ran"});
    EXPECT_EQ(ran.status.code, 75);
    EXPECT_EQ(ran.err + ran.out, "");
  }
  EXPECT_EQ(baton({"run", "job", "--quiet", "--json", "--", "touch", "ran"}).err, "");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
  refuses({"run", "job", "--quiet", "--ttl", "1ms", "--", "true"}, 2, "bad_request", "TTL");
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

// The other command has no limit of its own, but that of opening, which is 10 s.
TEST_F(CliRun, a_store_that_accepts_and_never_answers_takes_no_longer_than_the_wait) {
  const auto [socket, port] = listen_on_loopback();
  const std::string silent = "redis://127.0.0.1:" + std::to_string(port);
  auto unlimited = start({"lock", "list", "--store", silent});
  for (const Words& words :
       {Words{"run", "job", "--wait", "1s", "--store", silent, "--", "true"},
        Words{"lock", "break", "job", "--reason", "r", "--timeout", "1s", "--store", silent}}) {
    EXPECT_EQ(baton(words).status.code, 1);
  }
  EXPECT_TRUE(unlimited->running()) << unlimited->err();
  ::close(socket);
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

TEST_F(CliRun, a_lock_that_cannot_be_released_ends_with_its_at_least_for_time) {
  const auto done = baton({"run", "job", "--ttl", "4s", "--at-least-for", "1h", "--", "mv",
                           dir_ / "locks.db", dir_ / "gone.db"});
  EXPECT_EQ(done.status.code, 0);
  EXPECT_NE(done.err.find("it ends by itself within 5"), std::string::npos) << done.err;
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

TEST_F(CliRun, a_killed_baton_takes_all_that_the_command_has_started_with_it) {
  auto process = hold("job", kFamily, {"--ttl", "2s"});
  for (const auto* member : {"command", "grandchild", "daemon"}) {
    EXPECT_FALSE(has_ended(pid_in(member))) << member;
  }
  process->kill(SIGKILL);
  expect_family_ends();
}

TEST_F(CliRun, a_killed_baton_gives_the_command_time_to_clean_up) {
  auto process = hold("job", "trap 'echo told > told; exit 0' TERM; " + std::string(kForEver));
  process->kill(SIGKILL);
  EXPECT_TRUE(poll_until([&] { return std::filesystem::exists(dir_ / "told"); }));
}

TEST_F(CliRun, the_command_of_a_stopped_baton_has_ended_before_the_next_one_starts) {
  // The next holder looks whether one of them is still alive.
  const std::string look =
      "for member in command grandchild daemon; do "
      "state=$(sed 's/.*) //; s/ .*//' /proc/$(cat $member)/stat 2>/dev/null); "
      "[ -z \"$state\" ] || [ \"$state\" = Z ] || echo $member is $state; done";
  auto process = hold("job", kFamily, {"--ttl", "3s"});
  // One that is stopped inside a transaction of SQLite would keep everybody out.
  do {
    process->kill(SIGCONT);
    ASSERT_TRUE(stop_still(process->pid()));
  } while (baton({"run", "other", "--", "true"}).status.code != 0);
  EXPECT_FALSE(has_ended(pid_in("command")));
  const auto next = baton({"run", "job", "--wait", "1m", "--", "sh", "-c", look});
  EXPECT_EQ(next.status.code, 0) << next.err;
  EXPECT_EQ(next.out, "") << "it still runs beside the next holder";
  EXPECT_EQ(state_of(process->pid()), "T");
  process->kill(SIGCONT);
  ends(*process, 76);
}

TEST_F(CliRun, a_command_is_not_started_under_a_lease_that_has_run_out) {
  auto with = options({"run", "job", "--ttl", "1s", "--", "touch", (dir_ / "ran").string()});
  with.env["LD_PRELOAD"] = STOP_BEFORE_START;
  Process late(with);
  ASSERT_TRUE(poll_until([&] { return state_of(late.pid()) == "T"; })) << late.err();
  const auto next = baton({"run", "job", "--wait", "1m", "--", "true"});
  EXPECT_EQ(next.status.code, 0) << next.err;
  late.kill(SIGCONT);
  ends(late, 76);
  EXPECT_FALSE(std::filesystem::exists(dir_ / "ran"));
}

// The kernel sends SIGHUP to a process group without a shell above it, if the end of a process
// takes its last parent elsewhere in the session and one of its members is stopped.
TEST_F(CliRun, the_end_of_a_stopped_batons_command_does_not_hang_up_its_job) {
  auto with = options({"run", "job", "--ttl", "2s", "--"});
  with.argv = {"setsid", "-w", "sh", "-c",
               "'" BATON_PROGRAM
               "' run job --ttl 2s -- sh -c 'echo $$ > command; echo ready; exec sleep 1000' & "
               "echo $! > baton; wait; wait; echo goes on"};
  Process script(with);
  ASSERT_TRUE(script.wait_for_out("ready")) << script.err();
  ASSERT_TRUE(stop_still(pid_in("baton")));
  const pid_t command = pid_in("command");
  EXPECT_TRUE(poll_until([&] { return has_ended(command); }));
  EXPECT_EQ(state_of(pid_in("baton")), "T");
  ASSERT_EQ(::kill(pid_in("baton"), SIGCONT), 0);
  EXPECT_TRUE(script.wait_for_out("goes on")) << script.err();
}

TEST_F(CliRun, a_killed_watcher_takes_all_with_it_and_the_lock_is_released) {
  auto process = hold("job", kFamily, {"--ttl", "1h"});
  const pid_t watcher = only_child_of(process->pid());
  ASSERT_GT(watcher, 0);
  ASSERT_EQ(::kill(watcher, SIGKILL), 0);
  ends(*process, 128 + SIGKILL);
  expect_family_ends();
  EXPECT_NE(process->err().find("watches over the command was killed"), std::string::npos);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliRun, a_stopped_watcher_is_continued) {
  auto process = hold("job", "echo ready; read line; exit 7", {"--ttl", "1s"});
  const pid_t watcher = only_child_of(process->pid());
  ASSERT_GT(watcher, 0);
  ASSERT_EQ(::kill(watcher, SIGSTOP), 0);
  process->write("\n");
  ends(*process, 7);
}

TEST_F(CliRun, a_stopped_watcher_ends_all_when_baton_is_killed) {
  auto process = hold("job", kFamily, {"--ttl", "1h", "--grace", "100ms"});
  ASSERT_TRUE(stop_still(process->pid())) << "else it would continue the watcher";
  ASSERT_TRUE(stop_still(only_child_of(process->pid())));
  process->kill(SIGKILL);
  expect_family_ends();
}

TEST_F(CliRun, with_baton_and_watcher_stopped_the_command_ends_with_the_lock) {
  auto process = hold("job", kFamily, {"--ttl", "3s"});
  ASSERT_TRUE(stop_still(process->pid()));
  ASSERT_TRUE(stop_still(only_child_of(process->pid())));
  expect_family_ends();
  EXPECT_EQ(state_of(process->pid()), "T");
  process->kill(SIGCONT);
  ends(*process, 76);
}

TEST_F(CliRun, with_too_few_descriptors_it_says_so_and_ends) {
  for (int limit = 4; limit <= 16; ++limit) {
    std::filesystem::remove(dir_ / "locks.db");
    auto with = options({});
    with.argv = {"sh", "-c",
                 // What the test was given by its own parent would take up room.
                 "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n " + std::to_string(limit) +
                     "; exec '" BATON_PROGRAM "' run job --wait 1s -- true"};
    const auto ran = run(with);
    EXPECT_EQ(ran.status.code, 1) << limit << ": " << ran.err;
    EXPECT_NE(ran.err.find("at most " + std::to_string(limit) + " files open (ulimit -n)"),
              std::string::npos)
        << limit << ": " << ran.err;
  }
  auto with = options({});
  with.argv = {"sh", "-c", "ulimit -n 32; exec '" BATON_PROGRAM "' run job -- true"};
  EXPECT_EQ(run(with).err, "");
}

TEST_F(CliRun, what_the_command_leaves_behind_when_it_ends_by_itself_goes_on) {
  const auto ran =
      baton({"run", "job", "--", "sh", "-c",
             "setsid sh -c 'echo $$ > daemon; exec sleep 1000' > /dev/null 2>&1 < /dev/null & "
             "while [ ! -s daemon ]; do sleep 0.01; done; exit 3"});
  EXPECT_EQ(ran.status.code, 3) << ran.err;
  EXPECT_FALSE(has_ended(pid_in("daemon")));
  ::kill(pid_in("daemon"), SIGKILL);
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

TEST_F(CliRun, a_baton_that_was_stopped_past_its_lock_finds_the_command_told_and_ended) {
  // It has a tenth of the TTL to say so before it is killed, also on a busy machine.
  auto process = stopped_for_too_long(
      SIGSTOP, "trap 'echo told' TERM; echo ready; while :; do sleep 0.02; done", "10s");
  EXPECT_TRUE(process->wait_for_out("told\n"));
  process->kill(SIGCONT);
  ends(*process, 76);
  EXPECT_EQ(process->out(), "ready\ntold\n");
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
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a process of another user";
  if (const std::string refused = refusal({"setpriv", "--bounding-set=-kill", "--inh-caps=-kill",
                                           "setpriv", "--reuid=65534", "--clear-groups", "true"});
      !refused.empty()) {
    GTEST_SKIP() << "needs a root that may change user and drop a right: " << refused;
  }
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
