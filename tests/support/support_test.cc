#include <chrono>
#include <csignal>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/postgres_server.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

TEST(PollUntil, gives_up_at_its_limit) {
  EXPECT_FALSE(poll_until([] { return false; }, 5ms));
  int asked = 0;
  EXPECT_TRUE(poll_until([&] { return ++asked == 3; }));
}

TEST(TempDirTest, is_unique_and_removed_with_its_content) {
  fs::path first;
  {
    const TempDir one;
    const TempDir two;
    first = one.path();
    EXPECT_NE(one.path(), two.path());
    fs::create_directories(one / "deep/er");
    std::ofstream(one / "deep/er/file") << "text";
    EXPECT_TRUE(fs::exists(first / "deep/er/file"));
  }
  EXPECT_FALSE(fs::exists(first));
}

TEST(ProcessTest, returns_status_and_both_outputs) {
  const Finished done = run({.argv = {"sh", "-c", "echo one; echo two >&2; exit 3"}});
  EXPECT_EQ(done.status, ExitStatus{.code = 3});
  EXPECT_EQ(done.out, "one\n");
  EXPECT_EQ(done.err, "two\n");
  EXPECT_EQ(done.status.describe(), "exit 3");
}

TEST(ProcessTest, a_missing_program_is_an_error_at_the_start) {
  try {
    Process process({.argv = {"./baton-no-such-program"}});
    FAIL() << "started";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
  }
}

TEST(ProcessTest, passes_environment_directory_and_input) {
  const TempDir dir;
  Process process({.argv = {"sh", "-c", "pwd; echo \"$GREETING\"; cat"},
                   .env = {{"GREETING", "hello"}},
                   .cwd = dir.path()});
  EXPECT_TRUE(process.write("from stdin"));
  process.close_stdin();
  ASSERT_TRUE(process.wait());
  EXPECT_EQ(process.out(), fs::canonical(dir.path()).string() + "\nhello\nfrom stdin");
}

TEST(ProcessTest, more_output_than_a_pipe_holds_does_not_block_the_child) {
  const Finished done = run({.argv = {"sh", "-c", "head -c 1000000 /dev/zero"}});
  EXPECT_EQ(done.out.size(), 1000000U);
}

TEST(ProcessTest, output_can_be_awaited_and_a_signal_ends_the_child) {
  Process process({.argv = {"sh", "-c", "echo ready; exec sleep 600"}});
  EXPECT_TRUE(process.wait_for_out("ready\n"));
  EXPECT_TRUE(process.running());
  EXPECT_FALSE(process.wait(5ms));
  process.kill(SIGTERM);
  EXPECT_EQ(process.wait()->signal, SIGTERM);
  EXPECT_FALSE(process.running());
  process.kill(SIGTERM);
}

TEST(ProcessTest, waiting_for_output_ends_with_the_output) {
  Process process({.argv = {"true"}});
  EXPECT_FALSE(process.wait_for_out("never"));
}

TEST(ProcessTest, a_grandchild_that_keeps_the_pipes_does_not_delay_the_end) {
  Process process({.argv = {"sh", "-c", "sleep 600 & echo $!"}});
  ASSERT_TRUE(process.wait());
  const pid_t grandchild = std::stoi(process.out());
  EXPECT_EQ(::kill(grandchild, SIGKILL), 0);
}

TEST(ProcessTest, writing_to_a_child_that_is_gone_fails_quietly) {
  Process process({.argv = {"true"}});
  ASSERT_TRUE(process.wait());
  EXPECT_FALSE(process.write("anybody there?"));
}

TEST(ProcessTest, a_child_ends_with_its_scope) {
  pid_t pid = 0;
  {
    const Process process({.argv = {"sleep", "600"}});
    pid = process.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(PostgresServerTest, the_shared_server_is_there) {
  const char* url = std::getenv("BATON_TEST_POSTGRES");
  ASSERT_NE(url, nullptr) << "run the tests with ./dev test";
  const Finished done = run({.argv = {"psql", "-XAtc", "show fsync", url}});
  EXPECT_EQ(done.out, "on\n") << done.err;
}

TEST(PostgresServerTest, keeps_committed_rows_and_its_port_over_crash_and_restart) {
  PostgresServer server({.settings = {{"max_connections", "17"}}});
  const int port = server.port();
  EXPECT_EQ(server.sql("show max_connections"), "17");
  server.sql("create table kept as select 42 as answer");

  const pid_t before = server.pid();
  server.crash();
  EXPECT_FALSE(server.running());
  EXPECT_THROW(server.sql("select 1"), std::runtime_error);
  server.start();
  EXPECT_NE(server.pid(), before);
  EXPECT_EQ(server.port(), port);
  EXPECT_EQ(server.sql("select answer from kept"), "42");
  EXPECT_NE(server.log().find("automatic recovery in progress"), std::string::npos);

  server.restart();
  EXPECT_EQ(run({.argv = {"psql", "-XAtc", "select 1", server.socket_url()}}).out, "1\n");
}

TEST(PostgresServerTest, ends_with_the_process_that_started_it) {
  const TempDir parent;  // removes what the killed process cannot
  fs::permissions(parent.path(), fs::perms::others_exec, fs::perm_options::add);
  int pids[2];
  ASSERT_EQ(::pipe(pids), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::setenv("BATON_TEST_TMP", parent.path().c_str(), 1);
    const PostgresServer server;
    const pid_t pid = server.pid();
    [[maybe_unused]] const ssize_t written = ::write(pids[1], &pid, sizeof pid);
    ::raise(SIGKILL);
  }
  pid_t server = 0;
  ::close(pids[1]);
  ASSERT_EQ(::read(pids[0], &server, sizeof server), static_cast<ssize_t>(sizeof server));
  ::close(pids[0]);
  ::waitpid(child, nullptr, 0);
  // Where nobody adopts orphans the server stays a zombie, which is as dead.
  EXPECT_TRUE(poll_until([&] {
    std::ifstream stat("/proc/" + std::to_string(server) + "/stat");
    std::string text;
    std::getline(stat, text);
    return text.empty() || text.find(") Z ") != std::string::npos;
  }));
}

}  // namespace
}  // namespace baton::test
