// Several processes on one file. This program is also the other process: `--peer COMMAND PATH …`.

#include <csignal>
#include <fstream>
#include <iostream>

#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sched.h>

#include "integration/sqlite/sqlite_support.h"
#include "support/privileges.h"
#include "support/process.h"

namespace baton::test {
namespace {

std::unique_ptr<LockStore> open_real(const std::string& path) {
  return open_sqlite_store("sqlite:" + path, soon()).value();
}

Process peer(std::vector<std::string> arguments) {
  std::vector<std::string> argv = {"/proc/self/exe", "--peer"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return Process({.argv = std::move(argv)});
}

// --- the peer -----------------------------------------------------------------------------------

void say(const std::string& text) { std::cout << text << std::endl; }  // NOLINT: flushed

std::string told(const Error& error) {
  return std::string(to_string(error.code)) + (error.retryable ? " retryable: " : ": ") +
         error.message;
}

// Adds to a number in a file, which only the lock protects.
void peer_count(const std::string& path, int times) {
  auto store = open_real(path);
  for (int i = 0; i < times;) {
    const Request mine = acquire(kKey);
    if (ask(*store, mine).outcome != Outcome::granted) continue;
    int number = 0;
    std::ifstream(path + ".number") >> number;
    std::ofstream(path + ".number") << number + 1;
    ask(*store, same(Verb::release, mine));
    ++i;
  }
}

void peer_wait(const std::string& path) {
  auto store = open_real(path);
  Ear ear;
  const auto watch = store->watch("peer", ear);
  Request mine = acquire(kKey, Millis(60'000));
  mine.channel = "peer";
  say(std::string(to_string(ask(*store, mine).outcome)));
  if (!ear.wait()) return say("not woken");
  say("woken, " + std::string(to_string(ask(*store, same(Verb::claim, mine)).outcome)));
}

// Two names in one request, over and over, each time saying the token that it was told.
void peer_set(const std::string& path) {
  auto store = open_real(path);
  while (true) {
    Request mine = acquire("DEFAULT:left");
    mine.targets.push_back({"DEFAULT:right", Mode::X});
    const Reply reply = ask(*store, mine);
    if (reply.outcome == Outcome::granted) say(std::to_string(reply.tokens.at(1)));
    ask(*store, same(Verb::release, mine));
  }
}

void peer_open(const std::string& path) {
  auto store = open_sqlite_store("sqlite:" + path, soon());
  say(store ? "opened" : told(store.error()));
}

void peer_open_as_nobody(const std::string& path) {
  if (::geteuid() == 0 && ::setuid(65534) != 0) return say("cannot change user");
  peer_open(path);
}

// A disk of its own with little room; where there is no mount namespace to be had, or where / is
// no mount (a chroot), a limit on the size of files.
void fill_space(const std::string& directory) {
  if (::unshare(CLONE_NEWNS) == 0 &&
      ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      ::mount("tmpfs", directory.c_str(), "tmpfs", 0, "size=512k") == 0) {
    return;
  }
  std::signal(SIGXFSZ, SIG_IGN);
  constexpr rlim_t kRoom = 512UL * 1024;
  const rlimit limit{kRoom, kRoom};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void peer_fill(const std::string& directory) {
  fill_space(directory);
  auto store = open_real(directory + "/locks.db");
  std::vector<Request> held;
  for (int i = 0; i < 10'000; ++i) {
    Request request = acquire("DEFAULT:a:" + std::to_string(i));
    request.change.text = std::string(4'000, 'x');
    const auto replies = store->apply({&request, 1}, soon());
    if (replies) {
      held.push_back(request);
      continue;
    }
    say(told(replies.error()) + (replies.error().in_doubt ? " (in doubt)" : ""));
    break;
  }
  bool kept = !held.empty();
  for (const Request& request : held) {
    kept = kept && look(*store, request.targets[0].key).holders.size() == 1;
  }
  say(kept ? "all grants kept" : "lost a grant");
}

int be_peer(const std::vector<std::string>& arguments) {
  const std::string& command = arguments.at(0);
  const std::string& path = arguments.at(1);
  if (command == "count") peer_count(path, std::stoi(arguments.at(2)));
  if (command == "wait") peer_wait(path);
  if (command == "set") peer_set(path);
  if (command == "open") peer_open(path);
  if (command == "open-as-nobody") peer_open_as_nobody(path);
  if (command == "fill") peer_fill(path);
  return 0;
}

// --- the promises -------------------------------------------------------------------------------

using SqliteProcessTest = SqliteTest;

TEST_F(SqliteProcessTest, processes_exclude_each_other) {
  Process one = peer({"count", path_, "100"});
  Process two = peer({"count", path_, "100"});
  peer_count(path_, 100);
  ASSERT_TRUE(one.wait(2 * patience).value_or(ExitStatus{1}).success()) << one.err();
  ASSERT_TRUE(two.wait(2 * patience).value_or(ExitStatus{1}).success()) << two.err();
  int number = 0;
  std::ifstream(path_ + ".number") >> number;
  EXPECT_EQ(number, 300);
}

TEST_F(SqliteProcessTest, a_release_wakes_the_next_process) {
  auto store = open_real(path_);
  Request mine = acquire(kKey);
  mine.ttl = Millis(120'000);
  ASSERT_EQ(ask(*store, mine).outcome, Outcome::granted);
  Process waiter = peer({"wait", path_});
  ASSERT_TRUE(waiter.wait_for_out("queued")) << waiter.err();
  ask(*store, same(Verb::release, mine));
  ASSERT_TRUE(waiter.wait().has_value());
  EXPECT_NE(waiter.out().find("woken, granted"), std::string::npos) << waiter.out();
}

TEST_F(SqliteProcessTest, a_killed_process_leaves_nothing_half_done) {
  for (int round = 0; round < 10; ++round) {
    Process process = peer({"set", path_});
    const std::string enough = round % 2 == 0 ? "\n" : "5\n";
    ASSERT_TRUE(process.wait_for_out(enough)) << process.err();
    process.kill(SIGKILL);
    ASSERT_TRUE(process.wait().has_value());
    auto store = open_real(path_);
    const LockInfo left = look(*store, "DEFAULT:left");
    const LockInfo right = look(*store, "DEFAULT:right");
    EXPECT_EQ(left.holders.size(), right.holders.size()) << "all or nothing";
    const std::string out = process.out();
    const auto end = out.rfind('\n');
    const auto begin = out.rfind('\n', end - 1);
    const Token last = std::stoull(out.substr(begin == out.npos ? 0 : begin + 1));
    EXPECT_GT(ask(*store, acquire("DEFAULT:other" + std::to_string(round))).tokens.at(0), last);
    for (const LockInfo& info : {left, right}) {
      if (info.holders.empty()) continue;
      Request free;
      free.verb = Verb::break_;
      free.targets = {{info.key, Mode::X}};
      free.immediately = true;
      ask(*store, free);
    }
  }
}

TEST_F(SqliteProcessTest, many_processes_may_create_the_file_at_once) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 6; ++i) {
    processes.push_back(std::make_unique<Process>(
        ProcessOptions{.argv = {"/proc/self/exe", "--peer", "count", path_, "3"}}));
  }
  for (auto& process : processes) {
    EXPECT_TRUE(process->wait(2 * patience).value_or(ExitStatus{1}).success()) << process->err();
  }
  int number = 0;
  std::ifstream(path_ + ".number") >> number;
  EXPECT_EQ(number, 18);
}

TEST_F(SqliteProcessTest, a_process_in_another_time_namespace_is_refused) {
  auto store = open_real(path_);
  std::vector<std::string> argv{"unshare", "--time", "--fork", "--boottime", "86400"};
  // Only root makes time namespaces; everybody else is root in a user namespace of its own.
  if (::geteuid() != 0) argv.insert(argv.end(), {"--user", "--map-root-user"});
  std::vector<std::string> probe = argv;
  probe.insert(probe.end(), {"--", "true"});
  if (const std::string refused = refusal(std::move(probe)); !refused.empty()) {
    GTEST_SKIP() << "needs a time namespace of its own: " << refused;
  }
  argv.insert(argv.end(),
              {"--", std::filesystem::read_symlink("/proc/self/exe"), "--peer", "open", path_});
  Process process({.argv = std::move(argv)});
  ASSERT_TRUE(process.wait().has_value());
  EXPECT_NE(process.out().find("bad_store"), std::string::npos) << process.out() << process.err();
  EXPECT_NE(process.out().find("time namespace"), std::string::npos) << process.out();
}

TEST_F(SqliteProcessTest, a_read_only_file_is_refused) {
  if (const std::string refused = cannot_become_nobody(); !refused.empty()) {
    GTEST_SKIP() << "needs a user who is not root: " << refused;
  }
  { open_real(path_); }
  ASSERT_EQ(::chmod(path_.c_str(), 0444), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  Process process = peer({"open-as-nobody", path_});
  ASSERT_TRUE(process.wait().has_value());
  EXPECT_NE(process.out().find("bad_store"), std::string::npos) << process.out();
  EXPECT_NE(process.out().find("read-only"), std::string::npos) << process.out();
}

TEST_F(SqliteProcessTest, a_file_that_may_not_be_read_is_refused) {
  if (const std::string refused = cannot_become_nobody(); !refused.empty()) {
    GTEST_SKIP() << "needs a user who is not root: " << refused;
  }
  { open_real(path_); }
  ASSERT_EQ(::chmod(path_.c_str(), 0000), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0755), 0);
  Process process = peer({"open-as-nobody", path_});
  ASSERT_TRUE(process.wait().has_value());
  EXPECT_NE(process.out().find("unauthorized"), std::string::npos) << process.out();
}

TEST_F(SqliteProcessTest, a_full_disk_is_told_and_loses_nothing) {
  Process process = peer({"fill", directory_.path()});
  ASSERT_TRUE(process.wait().has_value());
  EXPECT_NE(process.out().find("unavailable retryable: no space"), std::string::npos)
      << process.out() << process.err();
  EXPECT_NE(process.out().find("all grants kept"), std::string::npos) << process.out();
}

}  // namespace
}  // namespace baton::test

int main(int argc, char** argv) {
  if (argc > 3 && std::string(argv[1]) == "--peer") {
    return baton::test::be_peer({argv + 2, argv + argc});
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
