#pragma once

// Real processes on a real store, killed, paused and cut off. Every run leaves a history that
// history.h judges. The store is named by $BATON_FAULT_STORE: sqlite, postgres,
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
#include "support/kube_server.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

using namespace std::chrono_literals;
using namespace std::string_literals;

class Fault : public ::testing::Test {
 protected:
  TempDir dir{"fault"};
  std::unique_ptr<PostgresServer> server;
  std::unique_ptr<RedisServer> redis;
  std::unique_ptr<EtcdServer> etcd;
  std::unique_ptr<KubeServer> kube;
  std::string url;
  int started = 0;
  std::vector<std::unique_ptr<Process>> load;

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

  std::unique_ptr<Process> contender(Millis ttl, Millis hold, int rounds) {
    const std::string owner = "contender-" + std::to_string(++started);
    return std::make_unique<Process>(ProcessOptions{
        .argv = {BATON_CONTENDER, "contend", url, "prize", (dir / "histories" / owner).string(),
                 (dir / "data.db").string(), std::to_string(ttl.count()),
                 std::to_string(hold.count()), std::to_string(rounds), owner}});
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
      process->kill(SIGKILL);
    }
    load.clear();
    verdict();
  }

  // Strikes that often under load; after each the work goes on.
  void survive(Millis ttl, int times, const std::function<void(int round)>& strike) {
    ASSERT_NO_FATAL_FAILURE(start_load(ttl));
    for (int round = 0; round < times; ++round) {
      strike(round);
      ASSERT_TRUE(goes_on()) << "nobody went on after round " << round;
    }
    finish_load();
  }

  std::size_t count(std::size_t Verdict::*what) const {
    return judge(dir / "histories", dir / "data.db").*what;
  }

  Verdict verdict() {
    Verdict found = judge(dir / "histories", dir / "data.db");
    for (const auto& problem : found.problems) ADD_FAILURE() << problem;
    return found;
  }

  // The only contender so far was granted the lock and last believed in it within `span` of that.
  [[nodiscard]] bool is_early_in_its_hold(Millis span) const {
    std::ifstream file(dir / "histories" / "contender-1");
    Event event;
    std::int64_t granted = 0;
    std::int64_t last = 0;
    while (file >> event.kind >> event.at >> event.token) {
      if (event.kind == 'G') granted = event.at;
      last = event.kind == 'B' ? event.at : 0;
    }
    return last != 0 && last - granted < std::chrono::nanoseconds(span).count();
  }
};

}  // namespace baton::test
