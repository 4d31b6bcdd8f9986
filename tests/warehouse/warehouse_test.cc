// The functional success criteria of observers on several nodes, each with a test named for it.

#include "baton/event.h"
#include "warehouse/warehouse_support.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class Warehouse : public WarehouseTest {
 protected:
  static constexpr const char* kPolls =
      "SELECT type, token, node, fire, started, ended, outcome FROM warehouse_poll"
      " ORDER BY type, started";
  static std::int64_t fire(const sql::Row& row) { return row.integer(3); }
  static std::int64_t started(const sql::Row& row) { return row.integer(4); }
  static std::int64_t ended(const sql::Row& row) { return row.integer(5); }
};

TEST_F(Warehouse, only_one_node_executes_polling_per_observer_type_at_a_time) {
  make_tables();
  for (const auto* id : {"a", "b", "c"}) start(id, {"--poll-takes", "10ms"});
  ASSERT_TRUE(every_type_is_polled(12));
  for (const auto* id : {"a", "b", "c"}) stop(id);
  const sql::Rows polls = query(kPolls);
  for (std::size_t i = 1; i < polls.size(); ++i) {
    if (polls[i][0] != polls[i - 1][0]) continue;
    EXPECT_GE(started(polls[i]), ended(polls[i - 1]))
        << polls[i].text(0) << " by " << polls[i].text(2);
    EXPECT_GT(polls[i].integer(1), polls[i - 1].integer(1)) << "tokens only grow";
  }
  for (const auto* id : {"a", "b", "c"}) {
    EXPECT_GT(count("SELECT count(*) FROM warehouse_poll WHERE node = '" + std::string(id) + "'"),
              0);
  }
}

TEST_F(Warehouse, each_cycle_polls_each_type_once_however_many_nodes_there_are) {
  make_tables();
  for (const auto* id : {"a", "b"}) start(id);
  ASSERT_TRUE(every_type_is_polled(10));
  for (const auto* id : {"a", "b"}) stop(id);
  for (const auto& type : kTypes) {
    const auto row = query(
                         "SELECT count(*), count(DISTINCT fire), max(fire) - min(fire) + 1 FROM "
                         "warehouse_poll WHERE type = '" +
                         type + "'")
                         .front();
    EXPECT_EQ(row[0], row[1]) << type << ": a cycle polled twice";
    EXPECT_EQ(row[0], row[2]) << type << ": a cycle not polled";
  }
}

TEST_F(Warehouse, two_nodes_ask_the_source_half_as_often_as_two_that_know_nothing_of_each_other) {
  make_tables();
  // Of the first polls: one that a node was stopped in has asked less.
  const auto queries_a_cycle = [&](const std::string& data, int polls) {
    auto database = sql::Connection::open(data).value();
    const auto row = database
                         ->query(
                             "SELECT sum(source_queries), count(DISTINCT fire) FROM (SELECT * FROM"
                             " warehouse_poll WHERE type = 'order' AND outcome = 'ok'"
                             " ORDER BY ended LIMIT " +
                             std::to_string(polls) + ") complete")
                         .value()
                         .front();
    return static_cast<double>(row.integer(0)) / static_cast<double>(row.integer(1));
  };
  for (const auto* id : {"a", "b"}) start(id);
  ASSERT_TRUE(every_type_is_polled(6));
  for (const auto* id : {"a", "b"}) stop(id);
  const double together = queries_a_cycle(data(), 6);

  double apart = 0;
  for (const std::string id : {"c", "d"}) {
    start(id, {"--store", file(id + "-locks.db"), "--data", file(id + "-data.db"), "--broker",
               "embedded:" + (dir_ / (id + "-broker.db")).string()});
    ASSERT_TRUE(poll_until([&] {
      const std::string out = node(id).out();
      return out.find("Lock released for: order-observer-poll") != std::string::npos;
    }));
    stop(id);
    apart += queries_a_cycle(file(id + "-data.db"), 1);
  }
  EXPECT_GT(together, 0);
  EXPECT_DOUBLE_EQ(together, apart / 2);
}

TEST_F(Warehouse, no_duplicate_events_are_published) {
  make_tables();
  for (const auto* id : {"a", "b"}) start(id);
  generate({"--rate", "300", "--seconds", "4", "--late", "1s", "--tick", "50ms"});
  expect_exact();
  EXPECT_EQ(count("SELECT count(*) FROM (SELECT aggregate_type, aggregate_id FROM outbox_events"
                  " GROUP BY aggregate_type, aggregate_id HAVING count(*) > 1) twice"),
            0);
  for (const auto* event :
       {"NewOrderObservedEvent", "InventoryObservedEvent", "WesTaskPolledEvent"}) {
    EXPECT_GE(events("type = '" + std::string(event) + "'"), 300);
  }
  EXPECT_NE(command("verify", {"--json"}).out.find(R"("exact":true)"), std::string::npos);
}

// That verify can say no, of each thing that can be wrong.
TEST_F(Warehouse, verify_finds_what_is_missing_doubled_or_made_up) {
  make_tables();
  add_orders(3);
  start("a");
  expect_exact();
  for (const auto* id : {"a", "counter"}) stop(id);
  const auto expect = [&](const std::string& url, const std::string& sql,
                          const std::string& figure) {
    auto database = sql::Connection::open(url).value();
    database->script(sql).value();
    const Finished done = command("verify", {"--json"});
    EXPECT_EQ(done.status.code, 1) << sql;
    EXPECT_NE(done.out.find(figure), std::string::npos) << sql << done.out;
  };
  const std::string effect = "event_id, event_type, type, source_id, counted_by";
  expect(effects(),
         "INSERT INTO warehouse_effect (" + effect + ") SELECT " + effect +
             " FROM warehouse_effect WHERE source_id = 'by-hand-0'",
         R"("effectsDoubled":1)");
  expect(effects(), "DELETE FROM warehouse_effect WHERE source_id = 'by-hand-0'",
         R"("effectsMissing":1)");
  expect(effects(), "UPDATE warehouse_effect SET source_id = 'none' WHERE source_id = 'by-hand-1'",
         R"("effectsUnknown":1)");
  const std::string event =
      "lane, slot, type, aggregate_type, aggregate_id, exchange, routing_key, payload, headers,"
      " version";
  expect(data(),
         "INSERT INTO outbox_events (event_id, " + event + ") SELECT '" + make_event_id() + "', " +
             event + " FROM outbox_events WHERE aggregate_id = 'by-hand-1'",
         R"("doubled":1)");
  expect(data(), "DELETE FROM outbox_events WHERE aggregate_id = 'by-hand-1'", R"("missing":1)");
  expect(data(), "UPDATE outbox_events SET aggregate_id = 'none' WHERE aggregate_id = 'by-hand-2'",
         R"("unknown":1)");
}

// As after a backup: what was published since is observed again, as the same events.
TEST_F(Warehouse, rows_observed_again_by_a_restored_database_have_no_second_effect) {
  make_tables();
  add_orders(20);
  start("a");
  expect_exact();
  stop("a");
  const auto handled = [&] {
    return query(effects(), "SELECT count(*) FROM processed_events").front().integer(0);
  };
  const auto before = handled();
  sql::Connection::open(data())
      .value()
      ->script(
          "DELETE FROM outbox_events; DELETE FROM warehouse_seen;"
          "UPDATE warehouse_observer SET complete_below = 0, in_pass = 0")
      .value();
  start("a");
  ASSERT_TRUE(poll_until([&] { return events("status = 'SENT'") >= before; }));
  EXPECT_TRUE(node("counter").wait_for_out("EVENT_SKIPPED_IDEMPOTENT"));
  expect_exact();
  EXPECT_EQ(handled(), before);
}

TEST_F(Warehouse, a_row_whose_id_no_event_can_carry_is_observed_all_the_same) {
  make_tables();
  auto source = sql::Connection::open(this->source()).value();
  for (const std::string& id : {std::string(1000, 'x'), std::string("line\nbreak")}) {
    source
        ->query("INSERT INTO orders (id, channel, changed_at) VALUES ($1, 'web', $2)",
                {id, std::int64_t{1'000'000}})
        .value();
  }
  start("a");
  expect_exact();
}

TEST_F(Warehouse, the_data_of_an_older_warehouse_is_refused_and_left_as_it_is) {
  sql::Connection::open(data()).value()->script("CREATE TABLE warehouse_outbox (seq INT)").value();
  const Finished refused = command("node", {"--store", store()});
  EXPECT_EQ(refused.status.code, 1);
  EXPECT_NE(refused.err.find("start with another database"), std::string::npos) << refused.err;
  EXPECT_EQ(count("SELECT count(*) FROM warehouse_outbox"), 0);
}

TEST_F(Warehouse, the_system_continues_operating_if_one_node_fails_the_other_acquires_all_locks) {
  configure({.ttl = "2000"});
  make_tables();
  for (const auto* id : {"a", "b"}) start(id, {"--poll-takes", "100ms"});
  ASSERT_TRUE(every_type_is_polled(1));
  ASSERT_TRUE(poll_until([&] {
    return count(
               "SELECT count(*) FROM warehouse_poll WHERE node = 'a' AND outcome = 'unfinished'") >
           0;
  })) << "a never polls";
  node("a").kill(SIGKILL);
  ASSERT_TRUE(node("a").wait());
  const auto last = std::to_string(count("SELECT max(started) FROM warehouse_poll"));
  generate({"--rate", "100", "--seconds", "1"});
  ASSERT_TRUE(every_type_is_polled(2, "AND node = 'b' AND started > " + last));
  expect_exact();
}

TEST_F(Warehouse, the_lock_is_released_after_each_execution_of_a_type) {
  // The next poll is far, and the TTL is far: only a release can free the lock.
  configure({.delay = "3600000", .scheduler = "  wes-observer:\n    backoff: 3600000\n"});
  make_tables();
  start("a", {"--source", "wes=" + file("none/source.db")});
  ASSERT_TRUE(node("a").wait_for_out("Error during polling for: wes-observer-poll"));
  auto client = locks();
  for (const auto& type : kTypes) {
    const LockName lock{.subject = std::string(kJobSubject),
                        .predicate = std::string(kJobPredicate),
                        .resources = {type + "-observer-poll"}};
    EXPECT_TRUE(poll_until([&] {
      const auto status = show_job(client, type + "-observer-poll");
      const auto info = client.get(lock);
      return status && status->last && info && info->holders.empty();
    })) << type;
    EXPECT_TRUE(node("a").wait_for_out("Lock released for: " + type + "-observer-poll"));
  }
  EXPECT_EQ(show_job(client, "wes-observer-poll").value().last->result, "failed");
  EXPECT_EQ(show_job(client, "order-observer-poll").value().last->result, "ok");
}

TEST_F(Warehouse, all_three_observer_types_can_be_polled_simultaneously_by_different_nodes) {
  // With a delay of its own each, so that they meet in every way.
  configure({.scheduler = "  inventory-observer:\n    fixed-delay: 170\n"
                          "  wes-observer:\n    fixed-delay: 290\n"});
  make_tables();
  for (const auto* id : {"a", "b", "c"}) start(id, {"--poll-takes", "200ms"});
  const auto met = [&] {
    const sql::Rows now = query(
        "SELECT i.node FROM warehouse_poll i, warehouse_poll o, warehouse_poll w"
        " WHERE i.type = 'inventory' AND o.type = 'order' AND w.type = 'wes'"
        " AND i.outcome = 'ok' AND o.outcome = 'ok' AND w.outcome = 'ok'"
        " AND i.node <> o.node AND o.node <> w.node AND i.node <> w.node"
        " AND i.started < o.ended AND o.started < i.ended AND i.started < w.ended"
        " AND w.started < i.ended AND o.started < w.ended AND w.started < o.ended");
    return !now.empty();
  };
  EXPECT_TRUE(poll_until(met, 2 * patience, 100ms));
}

TEST_F(Warehouse, clear_log_messages_show_which_node_acquired_which_lock) {
  make_tables();
  for (const auto* id : {"a", "b"}) start(id);
  for (const std::string id : {"a", "b"}) {
    for (const auto& type : kTypes) {
      const std::string line = "INFO  [" + id + "] Lock acquired for: " + type + "-observer-poll ";
      EXPECT_TRUE(node(id).wait_for_out(line)) << line;
    }
  }
}

TEST_F(Warehouse, a_type_that_is_not_enabled_is_not_polled) {
  configure({.scheduler = "  order-observer:\n    enabled: false\n"});
  make_tables();
  start("a");
  ASSERT_TRUE(poll_until([&] { return good_polls("wes") >= 3 && good_polls("inventory") >= 3; }));
  EXPECT_EQ(count("SELECT count(*) FROM warehouse_poll WHERE type = 'order'"), 0);
}

TEST_F(Warehouse, what_is_wrong_is_said_in_one_line_before_anything_starts) {
  configure({.scheduler = "  order-observer:\n    enabeld: true\n"});
  const Finished wrong = command("node", {"--store", store()});
  EXPECT_EQ(wrong.status.code, 2);
  EXPECT_NE(wrong.err.find("did you mean 'enabled'?"), std::string::npos) << wrong.err;
  configure({});
  const Finished no_type = command("node", {"--store", store(), "--source", "ordr=sqlite:x"});
  EXPECT_EQ(no_type.status.code, 2);
  EXPECT_NE(no_type.err.find("did you mean 'order'?"), std::string::npos) << no_type.err;
  const Finished no_data = command("node", {"--store", store(), "--data", "mysql://u:secret@h/d"});
  EXPECT_EQ(no_data.status.code, 2);
  EXPECT_EQ(no_data.err.find("secret"), std::string::npos) << no_data.err;
}

}  // namespace
}  // namespace baton::test
