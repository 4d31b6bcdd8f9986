// Real processes on real stores, killed, paused and cut off. Every run leaves a history that
// history.h judges. The store is named by $BATON_FAULT_STORE: sqlite or postgres.

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <algorithm>
#include <random>

#include "baton/fence.h"
#include "baton/locks.h"
#include "baton/store_admin.h"
#include "history.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

bool on_postgres() {
  const char* store = std::getenv("BATON_FAULT_STORE");
  if (store == nullptr) throw std::runtime_error("BATON_FAULT_STORE is not set");
  return store == "postgres"s;
}

class Fault : public ::testing::Test {
 protected:
  TempDir dir{"fault"};
  std::unique_ptr<PostgresServer> server;
  std::string url;
  int started = 0;

  void SetUp() override {
    std::filesystem::create_directory(dir / "histories");
    if (on_postgres()) {
      server = std::make_unique<PostgresServer>();
      url = server->url();
      open_admin(url, BootClock::now() + 30s).value()->migrate(BootClock::now() + 30s).value();
    } else {
      url = "sqlite:" + (dir / "locks.db").string();
    }
    sqlite3* data = nullptr;
    ASSERT_EQ(sqlite3_open((dir / "data.db").c_str(), &data), SQLITE_OK);
    sqlite3_exec(data, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    ASSERT_EQ(sqlite3_exec(data,
                           "CREATE TABLE entry (seq INTEGER PRIMARY KEY AUTOINCREMENT, token INT)",
                           nullptr, nullptr, nullptr),
              SQLITE_OK);
    install_fence(data).value();
    sqlite3_close(data);
  }

  std::unique_ptr<Process> contender(Millis ttl, Millis hold, int rounds) {
    const std::string owner = "contender-" + std::to_string(++started);
    return std::make_unique<Process>(ProcessOptions{
        .argv = {BATON_CONTENDER, "contend", url, "prize", (dir / "histories" / owner).string(),
                 (dir / "data.db").string(), std::to_string(ttl.count()),
                 std::to_string(hold.count()), std::to_string(rounds), owner}});
  }

  Verdict verdict() {
    const Verdict found = judge(dir / "histories", dir / "data.db");
    for (const auto& problem : found.problems) ADD_FAILURE() << problem;
    return found;
  }

  std::optional<HolderInfo> holder() {
    auto locks = open(url, {.owner = "observer"});
    if (!locks) return std::nullopt;
    const auto info = locks->get({.subject = "prize"});
    if (!info || info->holders.empty() || !info->holders[0].claimed) return std::nullopt;
    return info->holders[0];
  }
};

TEST_F(Fault, sixty_four_processes_take_turns_on_one_name) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 64; ++i) processes.push_back(contender(10s, 2ms, 3));
  for (auto& process : processes) {
    const auto status = process->wait(180s);
    ASSERT_TRUE(status) << "still running";
    EXPECT_TRUE(status->success()) << status->describe() << process->err();
  }
  const Verdict found = verdict();
  EXPECT_EQ(found.grants, 64U * 3);
  EXPECT_EQ(found.writes, 64U * 3);
}

TEST_F(Fault, killed_holders_are_followed_by_others_and_no_two_hold_at_once) {
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 6; ++i) processes.push_back(contender(1s, 20ms, 0));
  std::mt19937 random(7);
  for (int i = 0; i < 12; ++i) {
    const auto now = [&] { return judge(dir / "histories", dir / "data.db").grants; };
    const auto grants = now();
    ASSERT_TRUE(poll_until([&] { return now() > grants + 3; }, 60s, 50ms)) << "nobody went on";
    auto& victim = processes[random() % processes.size()];
    victim->kill(SIGKILL);
    victim->wait();
    victim = contender(1s, 20ms, 0);
  }
  for (auto& process : processes) process->kill(SIGKILL);
  processes.clear();
  EXPECT_GT(verdict().writes, 40U);
  // No orphan outlives its TTL: whoever comes now waits for one TTL at most, and then some for a
  // slow machine.
  auto locks = open(url).value();
  EXPECT_TRUE(locks.acquire({.subject = "prize"}, {.wait = 30s}));
}

TEST_F(Fault, a_paused_holder_cannot_write) {
  auto paused = contender(1s, 300ms, 0);
  std::optional<HolderInfo> before;
  ASSERT_TRUE(poll_until([&] { return (before = holder()).has_value(); }));
  paused->kill(SIGSTOP);
  // What it holds now that it cannot move: it may have come round since we looked.
  ASSERT_TRUE(poll_until([&] { return (before = holder()).has_value(); }));
  auto next = contender(1s, 5ms, 3);
  const auto status = next->wait(60s);
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success()) << status->describe() << next->err();
  paused->kill(SIGCONT);
  EXPECT_TRUE(poll_until(
      [&] { return judge(dir / "histories", dir / "data.db").refused > 0; }, 60s, 20ms))
      << "the stale write was not tried, or not refused";
  paused->kill(SIGKILL);
  paused->wait();
  const Verdict found = verdict();
  EXPECT_GE(found.refused, 1U);
}

TEST_F(Fault, a_process_that_dies_with_500_waiters_delays_the_next_by_no_more_than_one_ttl) {
  constexpr Millis kTtl = 8s;
  auto locks = open(url, {.owner = "survivor"}).value();
  auto held = locks.acquire({.subject = "prize"}, {.ttl = kTtl});
  ASSERT_TRUE(held) << held.error().message;
  Process crowd({.argv = {BATON_CONTENDER, "wait", url, "prize", "500",
                          std::to_string(kTtl.count())}});
  ASSERT_TRUE(poll_until(
      [&] { return locks.get({.subject = "prize"}).value().waiting == 500; }, 60s, 50ms));
  crowd.kill(SIGKILL);
  crowd.wait();
  const auto died = BootClock::now();
  ASSERT_TRUE(held->release());
  auto next = locks.acquire({.subject = "prize"}, {.ttl = kTtl, .wait = 120s});
  ASSERT_TRUE(next) << next.error().message;
  const auto delay = std::chrono::duration_cast<Millis>(BootClock::now() - died);
  RecordProperty("delay_ms", static_cast<int>(delay.count()));
  // The design says at most ttl/2 + ttl/5; a TTL leaves the rest to a busy machine.
  EXPECT_LE(delay, kTtl + 4s);
}

TEST_F(Fault, a_server_that_restarts_under_load_breaks_no_promise) {
  if (!on_postgres()) return;
  std::vector<std::unique_ptr<Process>> processes;
  for (int i = 0; i < 4; ++i) processes.push_back(contender(2s, 10ms, 0));
  const auto writes = [&] { return judge(dir / "histories", dir / "data.db").writes; };
  for (const auto mode : {PostgresServer::StopMode::fast, PostgresServer::StopMode::immediate,
                          PostgresServer::StopMode::immediate}) {
    const auto before = writes();
    ASSERT_TRUE(poll_until([&] { return writes() > before + 10; }, 90s, 50ms));
    server->restart(mode);
  }
  const auto before = writes();
  EXPECT_TRUE(poll_until([&] { return writes() > before + 10; }, 90s, 50ms))
      << "nobody went on after the last crash";
  for (auto& process : processes) {
    EXPECT_TRUE(process->running()) << process->err();
    process->kill(SIGKILL);
  }
  processes.clear();
  verdict();
}

}  // namespace
}  // namespace baton::test
