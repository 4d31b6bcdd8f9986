#pragma once

// Real processes on a real store, killed and paused, and the store under them. Every run leaves a
// history that history.h judges. The store is named by $BATON_FAULT_STORE: sqlite, postgres,
// postgres_advisory, redis, etcd or kubernetes.

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "baton/fence.h"
#include "baton/locks.h"
#include "baton/store_admin.h"
#include "history.h"
#include "support/etcd_server.h"
#include "support/history_file.h"
#include "support/kube_server.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

using namespace std::chrono_literals;
using namespace std::string_literals;

// A replica whose history also says what is done to it:
//   D <boot time ns> 0      it was killed: the time is after that
//   P <boot time ns> 0      it was paused: the time is after that
//   C <boot time ns> 0      it is about to go on
class Contender : public Process {
 public:
  Contender(ProcessOptions options, std::string history)
      : Process(std::move(options)), history_(std::move(history)) {}

  void die() {
    kill(SIGKILL);
    wait();
    note('D');
  }
  // Stops it if it is met as wanted; else it goes on.
  bool stop_if(const std::function<bool()>& met) {
    if (stop_still(pid()) && met()) {
      note('P');
      return true;
    }
    kill(SIGCONT);
    return false;
  }
  void go_on() {
    note('C');
    kill(SIGCONT);
  }

  [[nodiscard]] std::vector<Event> events() const {
    std::vector<Event> found;
    std::ifstream file(history_);
    Event event;
    while (file >> event.kind >> event.at >> event.token) found.push_back(event);
    return found;
  }
  [[nodiscard]] bool holds() const {
    const auto all = events();
    return !all.empty() && (all.back().kind == 'G' || all.back().kind == 'B');
  }
  // It was granted the lock and last believed in it within `span` of that.
  [[nodiscard]] bool is_early_in_its_hold(Millis span) const {
    const auto all = events();
    if (all.empty() || all.back().kind != 'B') return false;
    std::int64_t granted = 0;
    for (const Event& event : all) {
      if (event.kind == 'G') granted = event.at;
    }
    return all.back().at - granted < std::chrono::nanoseconds(span).count();
  }

 private:
  void note(char event) const {
    HistoryFile(history_).note(std::string(1, event) + ' ' +
                               std::to_string(BootClock::now().time_since_epoch().count()) + " 0");
  }

  std::string history_;
};

class Fault : public ::testing::Test {
 protected:
  TempDir dir{"fault"};
  std::unique_ptr<PostgresServer> server;
  std::unique_ptr<RedisServer> redis;
  std::unique_ptr<EtcdServer> etcd;
  std::unique_ptr<KubeServer> kube;
  std::string url;
  int started = 0;
  Millis longest_ttl{0};
  std::vector<std::unique_ptr<Contender>> load;

  void SetUp() override {
    std::filesystem::create_directory(dir / "histories");
    const char* store = std::getenv("BATON_FAULT_STORE");
    ASSERT_NE(store, nullptr) << "BATON_FAULT_STORE is not set";
    if (store == "postgres"s) {
      server = std::make_unique<PostgresServer>();
      url = server->url();
      open_admin(url, BootClock::now() + 30s).value()->migrate(BootClock::now() + 30s).value();
    } else if (store == "redis"s) {
      redis = std::make_unique<RedisServer>(
          RedisOptions{.settings = {{"appendonly", "yes"}, {"appendfsync", "always"}}});
      url = redis->url();
    } else if (store == "postgres_advisory"s) {
      // A session for each that holds or waits.
      server = std::make_unique<PostgresServer>(
          PostgresOptions{.settings = {{"max_connections", "400"}}});
      url = "postgres-advisory" + server->url().substr(server->url().find(':')) +
            "?baton_max_waiters=100";
      open_admin(url, BootClock::now() + 30s).value()->migrate(BootClock::now() + 30s).value();
    } else if (store == "etcd"s) {
      etcd = std::make_unique<EtcdServer>(EtcdOptions{.members = members()});
      url = etcd->url();
    } else if (store == "kubernetes"s) {
      kube = std::make_unique<KubeServer>();
      url = kube->store_url("admin", kube->create_namespace());
    } else {
      url = "sqlite:" + (dir / "locks.db").string();
    }
    sqlite3* data = nullptr;
    ASSERT_EQ(sqlite3_open((dir / "data.db").c_str(), &data), SQLITE_OK);
    sqlite3_exec(data, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    ASSERT_EQ(
        sqlite3_exec(data, "CREATE TABLE entry (seq INTEGER PRIMARY KEY AUTOINCREMENT, token INT)",
                     nullptr, nullptr, nullptr),
        SQLITE_OK);
    install_fence(data).value();
    sqlite3_close(data);
  }

  // How large the etcd cluster is.
  [[nodiscard]] virtual std::size_t members() const { return 1; }

  std::unique_ptr<Contender> contender(Millis ttl, Millis hold, int rounds) {
    const std::string owner = "contender-" + std::to_string(++started);
    const std::string history = dir / "histories" / owner;
    longest_ttl = std::max(longest_ttl, ttl);
    return std::make_unique<Contender>(
        ProcessOptions{.argv = {BATON_CONTENDER, "contend", url, "prize", history,
                                (dir / "data.db").string(), std::to_string(ttl.count()),
                                std::to_string(hold.count()), std::to_string(rounds), owner}},
        history);
  }

  // Processes that take turns with the lock until they are killed.
  void start_load(Millis ttl = 2s) {
    for (int i = 0; i < 4; ++i) load.push_back(contender(ttl, 10ms, 0));
    ASSERT_TRUE(goes_on()) << "nobody began";
  }
  bool goes_on() {
    const auto before = count(&Verdict::writes);
    return poll_until([&] { return count(&Verdict::writes) > before + 10; }, 90s, 50ms);
  }
  void finish_load() {
    for (auto& process : load) {
      EXPECT_TRUE(process->running()) << process->err();
      process->die();
    }
    load.clear();
    verdict();
  }

  // While it lasts nobody can be expected to be granted anything, and afterwards a TTL may begin
  // anew. The history says so: O when it begins, U when it is over.
  void outage(const std::function<void()>& strike) const {
    const HistoryFile file(dir / "histories" / "server");
    const auto now = [] { return std::to_string(BootClock::now().time_since_epoch().count()); };
    file.note("O " + now() + " 0");
    strike();
    file.note("U " + now() + " 0");
  }

  // Strikes that often under load; after each the work goes on.
  void survive(Millis ttl, int times, const std::function<void(int round)>& strike) {
    ASSERT_NO_FATAL_FAILURE(start_load(ttl));
    for (int round = 0; round < times; ++round) {
      outage([&] { strike(round); });
      ASSERT_TRUE(goes_on()) << "nobody went on after round " << round;
    }
    finish_load();
  }

  [[nodiscard]] Verdict judge_so_far() const {
    return judge(dir / "histories", dir / "data.db", longest_ttl);
  }
  std::size_t count(std::size_t Verdict::*what) const { return judge_so_far().*what; }

  Verdict verdict() {
    Verdict found = judge_so_far();
    for (const auto& problem : found.problems) ADD_FAILURE() << problem;
    RecordProperty("orphans", static_cast<int>(found.orphans));
    RecordProperty("longest_orphan_ms", static_cast<int>(found.longest_orphan.count()));
    return found;
  }
};

}  // namespace baton::test
