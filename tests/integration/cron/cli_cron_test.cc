// `baton cron` on one machine: what a fire runs, with what, and how it ends.

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "integration/cron/cron_support.h"
#include "support/frozen.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

TEST_F(CronTest, a_command_finds_its_fire_and_its_token_and_only_the_variables_it_was_given) {
  env_ = {{"SECRET_OF_BATON", "hidden"}, {"PASSED", "through"}};
  write_jobs(
      "defaults:\n"
      "  environment: {LEVEL: low, BOTH: defaults}\n"
      "jobs:\n"
      "  report:\n"
      "    after-end: 1h\n"
      "    command: [sh, -c, 'env > env.txt; pwd > pwd.txt; mv env.txt done.txt']\n"
      "    directory: " +
      dir_.path().string() +
      "\n"
      "    environment: {BOTH: job}\n"
      "    pass-environment: [PASSED, ABSENT]\n");
  const auto running = node("node-a");
  ASSERT_TRUE(logs(*running, {"FIRE_ENDED", "\"result\":\"ok\""})) << running->out();
  const auto found = lines("done.txt");
  const auto has = [&](const std::string& start) {
    return std::any_of(found.begin(), found.end(),
                       [&](const auto& line) { return line.starts_with(start); });
  };
  for (const char* variable :
       {"BATON_JOB=report", "BATON_FIRE=1", "BATON_DUE=20", "BATON_ATTEMPT=1", "BATON_RETRY=0",
        "BATON_NODE=node-a", "BATON_TOKEN=", "BATON_GRANT=", "BATON_NAME=DEFAULT:job:report",
        "BATON_FENCE=[{\"name\":\"DEFAULT:job:report\"", "LEVEL=low", "BOTH=job", "PASSED=through",
        "PATH=", "HOME="}) {
    EXPECT_TRUE(has(variable)) << variable;
  }
  for (const char* variable : {"SECRET_OF_BATON", "BATON_STORE", "ABSENT", "BOTH=defaults"}) {
    EXPECT_FALSE(has(variable)) << variable;
  }
  EXPECT_EQ(lines("pwd.txt"), Words{std::filesystem::canonical(dir_.path()).string()});
}

TEST_F(CronTest, what_a_command_writes_is_in_the_log_line_by_line_with_its_job_and_fire) {
  write_jobs(
      "jobs:\n"
      "  chatter:\n"
      "    after-end: 1h\n"
      "    command: |\n"
      "      echo one; echo two >&2; printf 'no end'\n"
      "  flood:\n"
      "    after-end: 1h\n"
      "    command: |\n"
      "      head -c 9000 /dev/zero | tr '\\0' x; echo\n"
      "      yes line | head -n 20000; echo end >&2\n");
  const auto running = node("node-a");
  ASSERT_TRUE(logs(*running, {"FIRE_ENDED", "chatter"}));
  ASSERT_TRUE(logs(*running, {"FIRE_ENDED", "flood", "\"result\":\"ok\""}));
  for (const auto& [text, stream] : {std::pair{"one", "stdout"}, {"two", "stderr"}}) {
    EXPECT_EQ(logged(*running, {"\"message\":\"" + std::string(text) + "\"", "baton.cron.output",
                                "\"job\":\"chatter\"", "\"fire\":\"1\"", stream})
                  .size(),
              1U)
        << text;
  }
  EXPECT_EQ(logged(*running, {"\"message\":\"no end\"", "\"job\":\"chatter\""}).size(), 1U);
  const auto cut = logged(*running, {"xxxx", "\"cut\":\"true\""});
  ASSERT_EQ(cut.size(), 1U);
  EXPECT_LT(cut.front().size(), 5000U);
  // A burst, and what a second allows while they are written; the rest is counted.
  EXPECT_LT(logged(*running, {"\"message\":\"line\""}).size(), 10'000U);
  EXPECT_FALSE(logged(*running, {"OUTPUT_DROPPED", "\"job\":\"flood\""}).empty());
}

TEST_F(CronTest, a_log_that_nobody_reads_holds_no_command_up) {
  write_jobs(
      "jobs:\n"
      "  flood:\n"
      "    every: 200ms\n"
      "    command: yes 'a long line of text' | head -n 20000; echo $BATON_FIRE >> " +
      (dir_ / "fires").string() + "\n");
  const std::string log = (dir_ / "log").string();
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const int held = open(log.c_str(), O_RDWR | O_CLOEXEC);  // and never read
  auto made = options({"cron", file(), "--node", "node-a"});
  made.argv.insert(made.argv.begin(), {"sh", "-c", "exec \"$@\" > " + log, "sh"});
  Process running(std::move(made));
  EXPECT_TRUE(poll_until([&] { return lines("fires").size() >= 5; }, patience));
  running.kill(SIGTERM);
  const auto status = running.wait();
  ASSERT_TRUE(status) << "still runs";
  EXPECT_EQ(status->code, 128 + SIGTERM);
  close(held);
}

TEST_F(CronTest, a_timeout_ends_the_command_and_all_that_it_has_started) {
  write_jobs(
      "jobs:\n"
      "  slow:\n"
      "    after-end: 1h\n"
      "    timeout: 300ms\n"
      "    grace: 200ms\n"
      "    command: |\n"
      "      trap '' TERM\n"
      "      setsid sleep 1000 &\n"
      "      echo $$ $! > " +
      (dir_ / "pids").string() +
      "\n"
      "      sleep 1000\n");
  const auto running = node("node-a");
  ASSERT_TRUE(
      logs(*running, {"FIRE_ENDED", "\"result\":\"failed\"", "ended after its timeout of 300ms"}))
      << running->out();
  std::istringstream pids(lines("pids").at(0));
  for (pid_t pid = 0; pids >> pid;) EXPECT_EQ(::kill(pid, 0), -1) << pid << " is alive";
}

TEST_F(CronTest, what_a_command_leaves_behind_is_ended_with_its_fire) {
  write_jobs(
      "jobs:\n"
      "  daemon:\n"
      "    after-end: 1h\n"
      "    grace: 200ms\n"
      "    command: |\n"
      "      setsid sh -c 'trap \"\" TERM; sleep 1000; sleep 1000' &\n"
      "      echo $! > " +
      (dir_ / "pids").string() + "\n");
  const auto running = node("node-a");
  ASSERT_TRUE(logs(*running, {"FIRE_ENDED", "\"result\":\"ok\""})) << running->out();
  EXPECT_EQ(::kill(std::stoi(lines("pids").at(0)), 0), -1);
}

TEST_F(CronTest, a_lock_that_is_lost_ends_the_command_before_the_next_can_have_it) {
  write_jobs(
      "jobs:\n"
      "  work:\n"
      "    after-end: 1h\n"
      "    ttl: 2s\n"
      "    command: |\n"
      "      echo $$ >> " +
      (dir_ / "pids").string() +
      "\n"
      "      sleep 1000\n");
  const auto running = node("node-a");
  ASSERT_TRUE(poll_until([&] { return lines("pids").size() == 1; }, patience));
  const auto broken = baton({"lock", "break", "job/work", "--predicate", "running", "--reason",
                             "test", "--timeout", "20s"});
  EXPECT_EQ(broken.status.code, 0) << broken.err;
  EXPECT_EQ(::kill(std::stoi(lines("pids").at(0)), 0), -1);
  EXPECT_TRUE(logs(*running, {"FIRE_ENDED", "the lock was lost"})) << running->out();
  EXPECT_TRUE(logged(*running, {"FIRE_ENDED", "\"result\":\"failed\""}).empty());
  // It is not done: it runs again, under a higher token.
  EXPECT_TRUE(poll_until([&] { return lines("pids").size() == 2; }, patience));
}

TEST_F(CronTest, a_command_that_fails_is_retried_as_often_as_its_job_says) {
  write_jobs(
      "jobs:\n"
      "  flaky:\n"
      "    after-end: 1h\n"
      "    retries: 3\n"
      "    retry-after: 10ms\n"
      "    command: echo $BATON_RETRY; test $BATON_RETRY = 2\n"
      "  hopeless:\n"
      "    after-end: 1h\n"
      "    retries: 1\n"
      "    retry-after: 10ms\n"
      "    command: exit 3\n"
      "  elsewhere:\n"
      "    after-end: 1h\n"
      "    retries: 3\n"
      "    command: exit 75\n"
      "  absent:\n"
      "    after-end: 1h\n"
      "    command: [no-such-program]\n");
  const auto running = node("node-a");
  EXPECT_TRUE(logs(*running, {"FIRE_ENDED", "flaky", "\"result\":\"ok\""}));
  EXPECT_EQ(logged(*running, {"FIRE_RETRIED", "flaky", "exit 1"}).size(), 2U);
  EXPECT_TRUE(logs(*running, {"FIRE_ENDED", "hopeless", "\"result\":\"failed\"", "exit 3"}));
  EXPECT_EQ(logged(*running, {"FIRE_RETRIED", "hopeless"}).size(), 1U);
  EXPECT_TRUE(logs(*running, {"FIRE_ENDED", "elsewhere", "\"result\":\"ok\"", "exit 75"}));
  EXPECT_TRUE(logged(*running, {"FIRE_RETRIED", "elsewhere"}).empty());
  EXPECT_TRUE(logs(*running, {"FIRE_ENDED", "absent", "failed", "command not found"}));
  EXPECT_TRUE(logged(*running, {"Job failed"}).empty()) << "said twice: " << running->out();
}

TEST_F(CronTest, sigterm_asks_commands_to_end_and_leaves_what_is_not_done_to_another_node) {
  write_jobs(
      "jobs:\n"
      "  polite:\n"
      "    after-end: 1h\n"
      "    command: |\n"
      "      trap 'echo asked; exit 0' TERM\n"
      "      echo begun; while :; do sleep 0.02; done\n"
      "  cut-off:\n"
      "    after-end: 1h\n"
      "    ttl: 30m\n"
      "    command: test $BATON_ATTEMPT = 2 || { echo begun; exec sleep 1000; }\n");
  const auto first = node("node-a");
  for (const char* job : {"polite", "cut-off"}) {
    ASSERT_TRUE(logs(*first, {"\"message\":\"begun\"", job})) << first->out();
  }
  first->kill(SIGTERM);
  ends(*first, 128 + SIGTERM);
  EXPECT_EQ(logged(*first, {"\"message\":\"asked\"", "polite"}).size(), 1U) << first->out();
  EXPECT_EQ(logged(*first, {"FIRE_ENDED", "polite", "\"result\":\"ok\""}).size(), 1U);
  EXPECT_EQ(logged(*first, {"FIRE_ENDED", "cut-off", "\"result\":\"left\""}).size(), 1U);
  const auto second = node("node-b");
  EXPECT_TRUE(logs(*second, {"FIRE_ENDED", "cut-off", "\"fire\":\"1\"", "\"attempt\":\"2\"",
                             "\"result\":\"ok\""}))
      << second->out();
  EXPECT_TRUE(logged(*second, {"FIRE_STARTED", "polite"}).empty());
}

TEST_F(CronTest, its_commands_end_with_it_when_it_is_killed) {
  write_jobs(
      "jobs:\n"
      "  work:\n"
      "    after-end: 1h\n"
      "    grace: 100ms\n"
      "    command: trap '' TERM; echo $$ > " +
      (dir_ / "pid").string() + "; sleep 1000; sleep 1000\n");
  const auto running = node("node-a");
  ASSERT_TRUE(poll_until([&] { return !lines("pid").empty(); }, patience));
  running->kill(SIGKILL);
  const pid_t pid = std::stoi(lines("pid").at(0));
  EXPECT_TRUE(poll_until([&] { return ::kill(pid, 0) != 0; }, patience));
}

// The jobs of the tests below: one that works until it is told to end, and one that is started by
// hand.
class CronSpawner : public CronTest {
 protected:
  void begin(const std::string& on_crash) {
    write_jobs(
        "jobs:\n"
        "  long:\n"
        "    after-end: 1h\n"
        "    command: |\n"
        "      echo begun; while ! test -e " +
        (dir_ / "end").string() +
        "; do sleep 0.02; done; echo finished\n"
        "  work:\n"
        "    after-end: 1h\n"
        "    ttl: 30m\n"
        "    on-crash: " +
        on_crash +
        "\n"
        "    command: echo worked $BATON_FIRE\n");
    node_ = node("node-a");
    ASSERT_TRUE(logs(*node_, {"\"message\":\"begun\""})) << node_->out();
    ASSERT_TRUE(logs(*node_, {"FIRE_ENDED", "work", "\"result\":\"ok\""})) << node_->out();
    spawner_ = spawner_of(*node_);
    ASSERT_NE(spawner_, 0);
  }
  // What ran before the spawner was replaced has gone on.
  void end_what_runs() {
    EXPECT_TRUE(logged(*node_, {"FIRE_ENDED", "long"}).empty()) << node_->out();
    std::ofstream(dir_ / "end").flush();
    EXPECT_TRUE(logs(*node_, {"FIRE_ENDED", "long", "\"result\":\"ok\""})) << node_->out();
    EXPECT_EQ(logged(*node_, {"\"message\":\"finished\""}).size(), 1U);
  }
  Finished work() const { return baton({"job", "run", "work", "--wait", "60s"}); }
  bool worked(const std::string& fire) const {
    return logs(*node_, {"\"message\":\"worked " + fire + "\""});
  }

  std::unique_ptr<Process> node_;
  pid_t spawner_ = 0;
};

TEST_F(CronSpawner, that_is_stopped_is_continued_and_holds_nobody_up) {
  begin("rerun");
  ASSERT_TRUE(stop_still(spawner_));
  const auto done = work();
  EXPECT_EQ(done.status.code, 0) << done.err;
  EXPECT_TRUE(worked("2")) << node_->out();
  EXPECT_EQ(spawner_of(*node_), spawner_);
  end_what_runs();
  ASSERT_TRUE(stop_still(spawner_));
  node_->kill(SIGTERM);
  ends(*node_, 128 + SIGTERM);
}

TEST_F(CronSpawner, that_is_killed_is_replaced_and_its_commands_go_on) {
  begin("skip");
  ASSERT_EQ(::kill(spawner_, SIGKILL), 0);
  EXPECT_TRUE(logs(*node_, {"WARN", "SPAWNER_REPLACED"})) << node_->out();
  EXPECT_EQ(work().status.code, 0);
  EXPECT_TRUE(worked("2")) << node_->out();
  EXPECT_NE(spawner_of(*node_), spawner_);
  end_what_runs();
}

TEST_F(CronSpawner, that_does_not_answer_is_replaced_and_its_fire_runs_again) {
  begin("rerun");
  std::optional<Frozen> still(std::in_place, spawner_);
  if (!*still) GTEST_SKIP() << "needs to trace another process, and may not";
  EXPECT_EQ(work().status.code, 0);
  EXPECT_TRUE(worked("2")) << node_->out();
  EXPECT_EQ(
      logged(*node_, {"FIRE_ENDED", "\"fire\":\"2\"", "\"result\":\"left\"", "or did not answer"})
          .size(),
      1U)
      << node_->out();
  EXPECT_EQ(logged(*node_, {"FIRE_ENDED", "\"fire\":\"2\"", "\"attempt\":\"2\"", "ok"}).size(), 1U);
  EXPECT_TRUE(logs(*node_, {"WARN", "SPAWNER_REPLACED"})) << node_->out();
  EXPECT_NE(spawner_of(*node_), spawner_);
  // Killed; who traces it collects it before its parent can.
  EXPECT_EQ(waitpid(spawner_, nullptr, __WALL), spawner_);
  still.reset();
  end_what_runs();
  // Nothing of it is left once another command has been started.
  EXPECT_EQ(work().status.code, 0);
  EXPECT_EQ(::kill(spawner_, 0), -1);
}

TEST_F(CronSpawner, that_does_not_answer_fails_a_fire_that_must_not_run_twice) {
  begin("skip");
  const Frozen still(spawner_);
  if (!still) GTEST_SKIP() << "needs to trace another process, and may not";
  (void)work();
  EXPECT_TRUE(
      logs(*node_, {"FIRE_ENDED", "\"fire\":\"2\"", "\"result\":\"failed\"", "or did not answer"}))
      << node_->out();
  EXPECT_EQ(work().status.code, 0);
  EXPECT_TRUE(worked("3")) << node_->out();
  EXPECT_TRUE(logged(*node_, {"\"message\":\"worked 2\""}).empty());
  end_what_runs();
}

TEST_F(CronTest, the_last_runs_of_a_job_are_kept_as_many_as_its_file_says) {
  write_jobs(
      "jobs:\n"
      "  busy:\n"
      "    after-end: 100ms\n"
      "    keep-runs: 5\n"
      "    command: test $BATON_FIRE != 6\n");
  const auto running = node("node-a");
  ASSERT_TRUE(logs(*running, {"FIRE_ENDED", "\"fire\":\"8\""}));
  running->kill(SIGTERM);
  ASSERT_TRUE(running->wait());
  const auto json = baton({"job", "history", "busy", "--json"}).out;
  std::size_t runs = 0;
  for (auto at = json.find("\"fire\":"); at != std::string::npos;
       at = json.find("\"fire\":", at + 1)) {
    ++runs;
  }
  EXPECT_EQ(runs, 5U) << json;
  const auto text = baton({"job", "history", "busy", "--limit", "4"}).out;
  EXPECT_EQ(text.find("FIRE"), 0U) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
  EXPECT_NE(text.find("node-a"), std::string::npos);
  EXPECT_NE(json.find("\"result\":\"failed\",\"detail\":\"exit 1\""), std::string::npos) << json;
}

}  // namespace
}  // namespace baton::test
