// Nodes that are killed or stand still in the middle of a poll, and sources that are down.

#include <filesystem>

#include "support/http_client.h"
#include "warehouse/warehouse_support.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class WarehouseFault : public WarehouseTest {
 protected:
  // Keeps everybody from reading the orders until the end of the scope.
  class BlockedOrders {
   public:
    explicit BlockedOrders(const std::string& source)
        : database_(sql::Connection::open(source).value()) {
      if (database_->kind() == sql::Kind::postgres) {
        database_->script("BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE").value();
      } else {
        database_->script("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE").value();
      }
    }
    ~BlockedOrders() { (void)database_->script("ROLLBACK"); }
    BlockedOrders(const BlockedOrders&) = delete;
    BlockedOrders& operator=(const BlockedOrders&) = delete;

   private:
    std::unique_ptr<sql::Connection> database_;
  };

  // It has begun to poll, and waits for the orders.
  [[nodiscard]] bool reads_orders(const std::string& id) const {
    const bool begun =
        count("SELECT count(*) FROM warehouse_poll WHERE type = 'order' AND node = '" + id +
              "' AND outcome = 'unfinished'") > 0;
    if (!begun || !postgres_) return begun;
    return Session(source()).sql("SELECT count(*) FROM pg_locks WHERE NOT granted") != "0";
  }

  // Not in the middle of a transaction of SQLite, with which it would hold up everybody.
  void stop_between_transactions(const std::string& id) {
    ASSERT_TRUE(poll_until([&] {
      if (!stop_still(node(id).pid())) return false;
      if (postgres_) return true;
      const auto writable = [](const std::string& url) {
        auto database = sql::Connection::open(url, {.statement_timeout = 200ms});
        return database && (*database)->script("BEGIN IMMEDIATE; ROLLBACK");
      };
      const bool free = writable(data()) && writable(file("broker.db")) &&
                        locks().try_acquire({.subject = "probe"}, {.ttl = 5s});
      if (!free) node(id).kill(SIGCONT);
      return free;
    }));
  }
};

TEST_F(WarehouseFault, a_node_killed_in_the_middle_of_a_poll_leaves_events_and_state_that_agree) {
  configure({.ttl = "1000", .warehouse = "  batch: 5\n"});
  make_tables();
  Process writer({.argv = words("generate", {"--rate", "120", "--seconds", "6"})});
  start("b", {"--poll-takes", "20ms"});
  for (int round = 1; round <= 4; ++round) {
    const std::string id = "a" + std::to_string(round);
    start(id, {"--poll-takes", "20ms"});
    ASSERT_TRUE(poll_until([&] {
      return events_of_node(id) > 0 &&
             count("SELECT count(*) FROM warehouse_poll WHERE outcome = 'unfinished' AND node = '" +
                   id + "'") > 0;
    })) << id
        << " never polls";
    node(id).kill(SIGKILL);
    ASSERT_TRUE(node(id).wait());
  }
  ASSERT_TRUE(writer.wait());
  expect_exact();
}

TEST_F(WarehouseFault, the_late_commit_of_a_node_paused_past_its_ttl_is_refused_by_the_fence) {
  configure({.ttl = "1500",
             .warehouse = "  statement-timeout: 60s\n",
             .observers = "    order: [web]\n"});
  make_tables();
  add_orders(10);
  {
    const BlockedOrders blocked(source());
    start("a");
    ASSERT_TRUE(poll_until([&] { return reads_orders("a"); }));
    stop_between_transactions("a");
  }
  start("b");
  ASSERT_TRUE(poll_until([&] { return good_polls("order", "AND node = 'b'") > 0; }, 2 * patience))
      << node("b").out();
  EXPECT_GE(events(), 10);
  stop("b");  // nobody else shall be why a cannot write
  node("a").kill(SIGCONT);
  ASSERT_TRUE(node("a").wait_for_out("Error during polling for: order-observer-poll: "));
  EXPECT_NE(node("a").out().find(postgres_ ? "fenced: token" : "newer holder"), std::string::npos)
      << node("a").out();
  EXPECT_EQ(events_of_node("a"), 0);
  // And then it is a node as any other.
  EXPECT_TRUE(poll_until([&] { return good_polls("order", "AND node = 'a'") > 0; }, 2 * patience));
  expect_exact();
}

// SQLite has no server that could end the transaction: see the docs.
#ifdef BATON_WAREHOUSE_ON_POSTGRES
TEST_F(WarehouseFault, a_node_paused_in_the_middle_of_a_transaction_does_not_hold_up_its_type) {
  configure({.ttl = "1500", .observers = "    order: [web]\n"});
  make_tables();
  add_orders(10);
  start("first");  // makes the tables of the data
  ASSERT_TRUE(poll_until([&] { return good_polls("order") > 0; }));
  stop("first");
  {
    Session blocked(data());
    blocked.sql("BEGIN; LOCK TABLE warehouse_seen IN SHARE MODE");
    generate({"--rate", "50", "--seconds", "0.2"});
    start("a");
    ASSERT_TRUE(poll_until([&] {
      return blocked.sql(
                 "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation ="
                 " 'warehouse_seen'::regclass") != "0";
    }));
    ASSERT_TRUE(stop_still(node("a").pid()));
  }
  start("b");
  EXPECT_TRUE(poll_until([&] { return good_polls("order", "AND node = 'b'") > 0; }, 2 * patience))
      << node("b").out();
  node("a").kill(SIGCONT);
  EXPECT_TRUE(node("a").wait_for_out("Error during polling for: order-observer-poll: "));
  expect_exact();
}
#endif

TEST_F(WarehouseFault, a_source_that_is_down_fails_its_type_alone_and_is_retried_with_backoff) {
  configure({.scheduler = "  wes-observer:\n    backoff: 300\n    max-backoff: 2000\n"});
  make_tables();
  const std::string file_name = (dir_ / "wes.db").string();
  const std::string name = "wes_" + std::to_string(getpid());
  const std::string url = source();
  const std::string wes =
      postgres_ ? url.substr(0, url.rfind('/') + 1) + name : "sqlite:" + file_name;
  for (const auto* id : {"a", "b"}) start(id, {"--source", "wes=" + wes});
  auto client = locks();
  const auto failures = [&] {
    const auto job = show_job(client, "wes-observer-poll");  // the nodes may not have added it yet
    return job ? job->failures : 0;
  };
  ASSERT_TRUE(poll_until([&] { return failures() >= 3; }, 2 * patience));
  const auto status = show_job(client, "wes-observer-poll").value();
  ASSERT_TRUE(status.last && status.next);
  EXPECT_GE(*status.next - status.last->ended, 1200ms) << "300 ms, doubled twice";
  EXPECT_NE((node("a").out() + node("b").out()).find("ERROR"), std::string::npos);
  EXPECT_NE((node("a").out() + node("b").out())
                .find("Error during polling for: wes-observer-poll: observer"),
            std::string::npos);
  for (const auto* other : {"order", "inventory"}) {
    const auto before = good_polls(other);
    EXPECT_TRUE(poll_until([&] { return good_polls(other) > before + 2; })) << other;
    EXPECT_EQ(show_job(client, std::string(other) + "-observer-poll").value().failures, 0);
  }
  if (postgres_) Session(shared_server()).sql("CREATE DATABASE " + name);
  const Finished made = run(
      {.argv = words("generate", {"--source", "wes=" + wes, "--rate", "60", "--seconds", "1"})});
  ASSERT_TRUE(made.status.success()) << made.err;
  expect_exact({"--source", "wes=" + wes, "--wait", "60s"});
  EXPECT_TRUE(poll_until([&] { return failures() == 0; }));
  nodes_.clear();
  if (postgres_) Session(shared_server()).sql("DROP DATABASE " + name + " WITH (FORCE)");
}

TEST_F(WarehouseFault, the_xid_cursor_of_a_source_that_has_no_xids_is_refused) {
  if (postgres_) GTEST_SKIP() << "a PostgreSQL source has xids";
  configure({.warehouse = "  cursor: xid\n"});
  make_tables();
  start("a");
  EXPECT_TRUE(node("a").wait_for_out("cursor: xid needs a PostgreSQL source"));
}

TEST_F(WarehouseFault, with_the_xid_cursor_rows_may_be_as_late_as_they_like) {
  if (!postgres_) GTEST_SKIP() << "only a PostgreSQL source has xids";
  configure({.warehouse = "  cursor: xid\n  batch: 7\n"});  // and the lateness is 4 s
  make_tables();
  for (const auto* id : {"a", "b"}) start(id);
  Session late(source());
  late.sql("BEGIN; INSERT INTO orders (id, channel, changed_at) VALUES ('late', 'web', 1)");
  generate({"--rate", "200", "--seconds", "3", "--late", "2s"});
  EXPECT_TRUE(every_type_is_polled(5));
  EXPECT_TRUE(poll_until([&] { return events() >= 600; })) << "one open transaction holds up none";
  late.sql("COMMIT");
  expect_exact();
  EXPECT_EQ(events("aggregate_id = 'late'"), 1);
}

TEST_F(WarehouseFault, metrics_show_each_type_and_node) {
  make_tables();
  start("a", {"--metrics", "127.0.0.1:0"});
  ASSERT_TRUE(every_type_is_polled(2));
  const std::string said = "metrics on http://127.0.0.1:";
  const std::string out = node("a").out();
  const int port = std::atoi(out.c_str() + out.find(said) + said.size());
  for (const std::string series :
       {"scheduler_observer_lock_acquired_total{type=\"order\"}",
        "scheduler_observer_lock_failed_total{type=\"wes\"}",
        "scheduler_observer_lock_acquired_by_node{node=\"a\",type=\"inventory\"}",
        "scheduler_observer_cycle_locked_count", "warehouse_events_published_total{type=\"order\"}",
        "warehouse_source_queries_total{type=\"wes\"}",
        "scheduler_observer_polling_duration_seconds_count{type=\"order\"}",
        "baton_outbox_published_total{outbox=\"warehouse\"}"}) {
    EXPECT_TRUE(poll_until([&] {
      const auto answer = http(port, {"GET", "/metrics"});
      return answer && answer->body.find(series + " ") != std::string::npos;
    })) << series;
  }
}

}  // namespace
}  // namespace baton::test
