// Real processes that divide a set over a real store, killed and stopped. $BATON_PARTITIONS_STORE
// says which: sqlite, postgres, postgres_advisory or redis.

#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <map>
#include <memory>

#include "baton/fence.h"
#include "baton/partitions.h"
#include "baton/sqlite_store.h"
#include "baton/store_admin.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;

constexpr std::size_t kCount = 8;

struct Event {
  char what = 0;
  std::size_t partition = 0;
  Token token = 0;
  std::string node;
};

class PartitionProcesses : public ::testing::Test {
 protected:
  TempDir dir{"partitions"};
  std::unique_ptr<PostgresServer> server;
  std::unique_ptr<RedisServer> redis;
  std::string url;
  sqlite3* data = nullptr;
  std::map<std::string, std::unique_ptr<Process>> nodes;
  std::optional<LockClient> locks;

  void SetUp() override {
    const char* store = std::getenv("BATON_PARTITIONS_STORE");
    ASSERT_NE(store, nullptr) << "BATON_PARTITIONS_STORE is not set";
    if (store == "sqlite"s) {
      url = "sqlite:" + (dir / "locks.db").string();
    } else if (store == "redis"s) {
      redis = std::make_unique<RedisServer>();
      url = redis->url();
    } else {
      server = std::make_unique<PostgresServer>();
      url = server->url();
      if (store == "postgres_advisory"s) url.insert(url.find(':'), "-advisory");
      open_admin(url, BootClock::now() + 30s).value()->migrate(BootClock::now() + 30s).value();
    }
    ASSERT_EQ(sqlite3_open((dir / "data.db").c_str(), &data), SQLITE_OK);
    sqlite3_busy_timeout(data, 10'000);
    install_fence(data).value();
    ASSERT_EQ(sqlite3_exec(data,
                           "PRAGMA journal_mode=WAL; CREATE TABLE history(at INTEGER PRIMARY KEY, "
                           "event, partition, token, node)",
                           nullptr, nullptr, nullptr),
              SQLITE_OK);
    locks = open(url, {.owner = "test"}).value();
  }

  void TearDown() override {
    nodes.clear();
    locks.reset();
    sqlite3_close(data);
  }

  void start(const std::string& id, const std::vector<std::string>& settings = {}) {
    ProcessOptions options;
    options.argv = {BATON_PARTITION_REPLICA, "url=" + url, "node=" + id,
                    "data=" + (dir / "data.db").string(), "count=" + std::to_string(kCount)};
    options.argv.insert(options.argv.end(), settings.begin(), settings.end());
    nodes[id] = std::make_unique<Process>(std::move(options));
    ASSERT_TRUE(nodes[id]->wait_for_out("ready")) << nodes[id]->err();
  }

  void end(const std::string& id) {
    nodes[id]->close_stdin();
    const auto status = nodes[id]->wait();
    ASSERT_TRUE(status) << "still runs";
    EXPECT_TRUE(status->success()) << status->describe() << nodes[id]->err();
  }

  std::vector<Event> history() const {
    std::vector<Event> events;
    sqlite3_stmt* rows = nullptr;
    sqlite3_prepare_v2(data, "SELECT event, partition, token, node FROM history ORDER BY at", -1,
                       &rows, nullptr);
    const auto text = [&](int column) {
      return std::string(
          reinterpret_cast<const char*>(sqlite3_column_text(rows, column)));  // NOLINT
    };
    while (sqlite3_step(rows) == SQLITE_ROW) {
      events.push_back({text(0)[0], static_cast<std::size_t>(sqlite3_column_int64(rows, 1)),
                        static_cast<Token>(sqlite3_column_int64(rows, 2)), text(3)});
    }
    sqlite3_finalize(rows);
    return events;
  }

  std::size_t begun() const {
    const auto events = history();
    return static_cast<std::size_t>(std::count_if(
        events.begin(), events.end(), [](const Event& event) { return event.what == 'b'; }));
  }

  // Of the nodes named, each has its quota, nobody else has anything, and the owners are at work:
  // the last row of every partition is its owner's and does not say that it has ended.
  bool is_balanced(const std::vector<std::string>& members) {
    auto sets = partition_sets(*locks, "relay/shop");
    if (!sets || sets->size() != 1 || sets->front().members.size() != members.size()) return false;
    std::size_t owned = 0;
    for (const auto& member : sets->front().members) {
      if (member.owned != member.quota) return false;
      owned += member.owned;
    }
    if (owned != kCount) return false;
    std::map<std::size_t, Event> last;
    for (const Event& event : history()) last[event.partition] = event;
    for (const auto& partition : sets->front().partitions) {
      const auto at = last.find(partition.number);
      if (at == last.end() || at->second.token != partition.token || at->second.what == 'e') {
        return false;
      }
    }
    return true;
  }
  bool becomes_balanced(const std::vector<std::string>& members) {
    return poll_until([&] { return is_balanced(members); }, 2 * patience, 20ms);
  }

  // The rows of each partition are those of one owner after the other. An owner that listened has
  // ended before the next one began; only the dead and the stopped have not.
  void expect_one_owner_at_a_time(const std::vector<std::string>& may_be_cut_off = {}) const {
    std::map<std::size_t, Event> last;
    for (const Event& event : history()) {
      const auto before = last.find(event.partition);
      if (before != last.end() && before->second.token != event.token) {
        EXPECT_GT(event.token, before->second.token);
        EXPECT_EQ(event.what, 'b');
        const bool cut_off = std::find(may_be_cut_off.begin(), may_be_cut_off.end(),
                                       before->second.node) != may_be_cut_off.end();
        EXPECT_TRUE(cut_off || before->second.what == 'e')
            << event.node << " began partition " << event.partition << " before "
            << before->second.node << " had ended";
      }
      last[event.partition] = event;
    }
  }
};

TEST_F(PartitionProcesses, a_join_moves_one_share_and_a_leave_what_the_leaver_had_each_drained) {
  start("n1", {"drain=300", "ttl=5000"});
  ASSERT_TRUE(becomes_balanced({"n1"}));
  EXPECT_EQ(begun(), kCount);
  start("n2", {"drain=300", "ttl=5000"});
  ASSERT_TRUE(becomes_balanced({"n1", "n2"}));
  EXPECT_EQ(begun(), kCount + 4) << "at most count / n + 1 = 9 move";
  start("n3", {"drain=300", "ttl=5000"});
  ASSERT_TRUE(becomes_balanced({"n1", "n2", "n3"}));
  EXPECT_EQ(begun(), kCount + 4 + 2) << "at most count / n + 1 = 5 move";
  end("n2");
  ASSERT_TRUE(becomes_balanced({"n1", "n3"}));
  EXPECT_EQ(begun(), kCount + 4 + 2 + 3);
  end("n1");
  end("n3");
  expect_one_owner_at_a_time();
  EXPECT_TRUE(partition_sets(*locks).value().empty());
}

TEST_F(PartitionProcesses, the_partitions_of_a_killed_replica_move_and_nothing_else_does) {
  // Long enough that no lease of a live one is lost on a busy machine.
  for (const auto* id : {"n1", "n2", "n3"}) start(id, {"ttl=5000"});
  ASSERT_TRUE(becomes_balanced({"n1", "n2", "n3"}));
  const auto before = partition_sets(*locks, "relay/shop").value().front();
  nodes["n2"]->kill(SIGKILL);
  ASSERT_TRUE(becomes_balanced({"n1", "n3"}));
  const auto after = partition_sets(*locks, "relay/shop").value().front();
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto& had = before.partitions[i];
    const auto& has = after.partitions[i];
    if (had.node == "n2") {
      EXPECT_GT(has.token, had.token) << i;
    } else {
      EXPECT_EQ(has.token, had.token) << "partition " << i << " of " << had.node << " moved";
    }
  }
  expect_one_owner_at_a_time({"n2"});
}

TEST_F(PartitionProcesses, a_replica_stopped_past_its_ttl_writes_nothing_more_and_joins_again) {
  start("n1", {"ttl=5000"});
  start("n2");
  ASSERT_TRUE(becomes_balanced({"n1", "n2"}));
  ASSERT_TRUE([&] {
    // Not in the middle of a transaction: on SQLite that would stop everybody.
    sqlite3_exec(data, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    const bool still = stop_still(nodes["n2"]->pid());
    sqlite3_exec(data, "COMMIT", nullptr, nullptr, nullptr);
    return still;
  }());
  ASSERT_TRUE(becomes_balanced({"n1"}));
  nodes["n2"]->kill(SIGCONT);
  ASSERT_TRUE(becomes_balanced({"n1", "n2"}));
  expect_one_owner_at_a_time({"n2"});
}

}  // namespace
}  // namespace baton::test
