// The relay of an outbox in a PostgreSQL database, with the embedded broker. Times are scaled.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "baton/memory_store.h"
#include "baton/outbox.h"
#include "baton/relay.h"
#include "relay/lane_tables.h"
#include "support/postgres_database.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/relay_support.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class PostgresRelay : public ::testing::Test {
 protected:
  PostgresRelay() {
    install_outbox(session_.get()).value();
    broker_->declare(shop_topology(), soon()).value();
  }

  std::string put(Session& in, const std::string& aggregate, const std::string& payload = "{}",
                  const std::string& type = "OrderPlaced") {
    return outbox_.add(in.get(), {.type = type, .aggregate = aggregate, .payload = payload})
        .value();
  }
  std::string add(const std::string& aggregate, const std::string& payload = "{}",
                  const std::string& type = "OrderPlaced") {
    session_.sql("BEGIN");
    auto id = put(session_, aggregate, payload, type);
    session_.sql("COMMIT");
    return id;
  }
  // Of many aggregates, the payloads counted through.
  void add_many(int count, int aggregates) {
    session_.sql("BEGIN");
    std::vector<Event> events;
    for (int i = 0; i < count; ++i) {
      events.push_back({.type = "OrderPlaced",
                        .aggregate = "o-" + std::to_string(i % aggregates),
                        .payload = std::to_string(i)});
    }
    outbox_.add_all(session_.get(), events).value();
    session_.sql("COMMIT");
  }

  RelayOptions options() {
    return {.ttl = 2s, .max_attempts = 3, .first_delay = 20ms, .on_error = [this](const Error& e) {
              const std::lock_guard lock(mutex_);
              errors_ += e.message + "\n";
            }};
  }
  std::unique_ptr<Relay> start(RelayOptions with, const std::string& url = {}) {
    auto relay = std::make_unique<Relay>(locks_, url.empty() ? database_.url() : url, broker_,
                                         std::move(with));
    relay->start().value();
    return relay;
  }
  std::unique_ptr<Relay> start() { return start(options()); }
  std::string errors() const {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  bool becomes(const std::string& question, const std::string& answer) {
    return poll_until([&] { return session_.sql(question) == answer; });
  }
  bool all_sent() {
    return becomes("SELECT count(*) FROM outbox_events WHERE status <> 'SENT'", "0");
  }
  std::string status(const std::string& id) {
    return session_.sql("SELECT status FROM outbox_events WHERE event_id = '" + id + "'");
  }
  // The relay sleeps: it holds the locks of its lanes.
  bool sleeps(const Relay& relay) {
    return poll_until([&] {
      return relay.stats().lanes_owned == 16 &&
             session_.sql(
                 "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND"
                 " mode = 'ExclusiveLock' AND classid = 'outbox_events'::regclass::oid"
                 " AND database = (SELECT oid FROM pg_database WHERE"
                 " datname = current_database())") == "16";
    });
  }
  static std::vector<std::string> numbers(int from, int count, int step) {
    std::vector<std::string> all;
    for (int i = from; i < count; i += step) all.push_back(std::to_string(i));
    return all;
  }

  Database database_;
  Session session_{database_.url()};
  TempDir dir_ = TempDir::in_memory("relay");
  LockClient locks_ = LockClient::make(make_memory_store(), {.owner = "one"}).value();
  std::shared_ptr<Broker> broker_ =
      Broker::open("embedded:" + (dir_ / "broker.db").string()).value();
  const Outbox outbox_{{.exchange = "shop"}};
  mutable std::mutex mutex_;
  std::string errors_;
};

TEST_F(PostgresRelay, without_the_rights_to_clean_it_says_so_once_and_goes_on) {
  const std::string role = "relay_" + database_.name();
  session_.sql("CREATE ROLE " + role + " LOGIN");
  session_.sql("GRANT SELECT ON outbox_events, outbox_lane, outbox_version TO " + role);
  session_.sql("GRANT UPDATE ON outbox_events, outbox_lane TO " + role);
  const auto old = add("o-1");
  auto with = options();
  with.clean_every = 20ms;
  auto relay = start(with, database_.url_as(role));
  ASSERT_TRUE(all_sent()) << errors();
  session_.sql(
      "UPDATE outbox_events SET created_at = now() - interval '5 days', slot = (slot + 3) & 7");
  const std::string grant = "GRANT SELECT, TRUNCATE ON outbox_events_0, ";
  ASSERT_TRUE(poll_until([&] { return errors().find(grant) != std::string::npos; })) << errors();
  add("o-1");
  EXPECT_TRUE(all_sent()) << "it goes on";
  EXPECT_EQ(errors().find(grant), errors().rfind(grant)) << "once: " << errors();
  for (int slot = 0; slot < 8; ++slot) {
    session_.sql("GRANT SELECT, TRUNCATE ON outbox_events_" + std::to_string(slot) + " TO " + role);
  }
  EXPECT_TRUE(becomes("SELECT count(*) FROM outbox_events WHERE event_id = '" + old + "'", "0"))
      << errors();
  relay.reset();
  session_.sql("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_F(PostgresRelay, a_late_commit_is_published_and_holds_up_nobody) {
  const auto relay = start();
  const Spy spy(broker_, "all");
  Session late(database_.url());
  late.sql("BEGIN");
  const auto first = put(late, "o-1", "1");
  const auto second = add("o-2", "2");
  ASSERT_TRUE(spy.wait_for(1)) << errors();
  EXPECT_TRUE(spy.has(second));
  Session undone(database_.url());
  undone.sql("BEGIN");
  const auto never = put(undone, "o-3", "3");
  const auto third = add("o-1", "4");
  ASSERT_TRUE(spy.wait_for(2)) << errors();
  EXPECT_TRUE(spy.has(third));
  EXPECT_FALSE(spy.has(first));
  undone.sql("ROLLBACK");
  late.sql("COMMIT");
  ASSERT_TRUE(spy.wait_for(3)) << errors();
  EXPECT_TRUE(spy.has(first));
  EXPECT_TRUE(all_sent());
  EXPECT_FALSE(spy.has(never));
  EXPECT_EQ(spy.deliveries(), 3U);
  EXPECT_EQ(errors(), "");
}

TEST_F(PostgresRelay, the_order_of_an_aggregate_is_that_in_which_its_transactions_became_visible) {
  session_.sql("CREATE TABLE stock (id int PRIMARY KEY); INSERT INTO stock VALUES (1)");
  const auto relay = start();
  const Spy spy(broker_, "all");
  // It has the older xid, and waits for the row of the aggregate.
  Session older(database_.url());
  older.sql("BEGIN; INSERT INTO stock VALUES (2)");
  session_.sql("BEGIN; SELECT id FROM stock WHERE id = 1 FOR UPDATE");
  put(session_, "o-1", "1");
  std::thread waits([&] {
    older.sql("SELECT id FROM stock WHERE id = 1 FOR UPDATE");
    put(older, "o-1", "2");
    older.sql("COMMIT");
  });
  session_.sql("COMMIT");
  waits.join();
  ASSERT_TRUE(spy.wait_for(2)) << errors();
  EXPECT_EQ(spy.bodies("o-1"), (std::vector<std::string>{"1", "2"}));
}

TEST_F(PostgresRelay, a_relay_that_sleeps_is_woken) {
  const auto relay = start();
  const Spy spy(broker_, "all");
  ASSERT_TRUE(sleeps(*relay)) << errors();
  for (int i = 1; i <= 3; ++i) {
    add("o-" + std::to_string(i));
    ASSERT_TRUE(spy.wait_for(static_cast<std::size_t>(i))) << errors();
    ASSERT_TRUE(sleeps(*relay)) << errors();
  }
  // Without a NOTIFY it is found within a second.
  session_.sql("SELECT outbox_add('OrderPlaced', 'o-9', exchange => 'shop', quiet => true)");
  EXPECT_TRUE(spy.wait_for(4)) << errors();
}

// A transaction that has added an event holds the lock of its lane until it ends.
TEST_F(PostgresRelay, beside_a_transaction_that_stays_open_it_looks_only_now_and_then) {
  const auto relay = start();
  const Spy spy(broker_, "all");
  ASSERT_TRUE(sleeps(*relay)) << errors();
  Session writer(database_.url());
  writer.sql("BEGIN");
  // Granted when the relay wakes up, so that it cannot go back to sleep.
  writer.sql("SELECT pg_advisory_xact_lock_shared('outbox_events'::regclass::oid::int, 3)");
  const auto transactions = [this] {
    return std::stol(session_.sql(
        "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"));
  };
  const auto from = BootClock::now();
  const long before = transactions();
  ASSERT_TRUE(poll_until([&] { return BootClock::now() - from > 4s; }, patience, 100ms));
  // 16 pauses a second, of a few statements each; without them it is thousands.
  EXPECT_LT(transactions() - before, 900) << errors();
  add("o-1");
  EXPECT_TRUE(spy.wait_for(1)) << errors();
  writer.sql("COMMIT");
  EXPECT_TRUE(sleeps(*relay)) << errors();
}

// The lag of the others stays below a second. The median, because the machine may be busy.
TEST_F(PostgresRelay, beside_a_long_transaction_that_has_added_an_event_the_others_come_at_once) {
  std::vector<Millis> lags;
  auto with = options();
  with.on_event = [&](const RelayEvent& event) {
    if (event.kind != RelayEvent::Kind::published) return;
    const std::lock_guard lock(mutex_);
    lags.push_back(event.took);
  };
  const auto relay = start(with);
  const Spy spy(broker_, "all");
  Session writer(database_.url());
  writer.sql("BEGIN");
  put(writer, "o-0");
  // In lanes of their own and in that of the writer.
  for (int i = 0; i < 40; ++i) {
    add("o-" + std::to_string(i % 20));
    ASSERT_TRUE(spy.wait_for(static_cast<std::size_t>(i) + 1)) << errors();
  }
  ASSERT_TRUE(poll_until([&] { return relay->stats().published == 40; }));
  {
    const std::lock_guard lock(mutex_);
    ASSERT_EQ(lags.size(), 40U);
    std::sort(lags.begin(), lags.end());
    EXPECT_LT(lags[20], 1s) << lags[20].count() << " ms";
  }
  writer.sql("COMMIT");
  EXPECT_TRUE(spy.wait_for(41)) << errors();
  relay->stop();
}

TEST_F(PostgresRelay, a_row_with_a_time_that_no_clock_shows_holds_up_nobody) {
  session_.sql(
      "INSERT INTO outbox_events (lane, slot, event_id, type, aggregate_type, aggregate_id,"
      " exchange, routing_key, payload, headers, version, created_at) SELECT hashtextextended(a, 0)"
      " & 15, 0, gen_random_uuid(), 'T', '', a, 'shop', 'order.placed', '{}', '{}', 1, t"
      " FROM (VALUES ('x', 'infinity'::timestamptz), ('y', '-infinity'), ('z', '4000-01-01 BC'))"
      " AS row (a, t)");
  add("o-1");
  const auto relay = start();
  const Spy spy(broker_, "all");
  EXPECT_TRUE(spy.wait_for(4)) << errors();
  EXPECT_TRUE(all_sent()) << errors();
}

TEST_F(PostgresRelay, a_backlog_of_many_pages_is_published_in_order_and_its_checkpoint_saved) {
  add_many(6'000, 40);
  // Another transaction is at work all the time.
  Session beside(database_.url());
  beside.sql("BEGIN; CREATE TABLE beside (id int)");
  const auto relay = start();
  const Spy spy(broker_, "all");
  ASSERT_TRUE(spy.wait_for(6'000)) << errors();
  for (int a = 0; a < 40; ++a) {
    ASSERT_EQ(spy.bodies("o-" + std::to_string(a)), numbers(a, 6'000, 40)) << a;
  }
  ASSERT_TRUE(all_sent()) << errors();
  relay->stop();
  EXPECT_EQ(spy.deliveries(), 6'000U);
  EXPECT_EQ(relay->stats().published, 6'000U);
  EXPECT_EQ(errors(), "");
  EXPECT_EQ(session_.sql("SELECT count(*) FROM outbox_events e JOIN outbox_lane l USING (lane)"
                         " WHERE pg_visible_in_snapshot(e.xid, l.seen)"),
            "6000");
}

TEST_F(PostgresRelay, large_bodies_that_do_not_come_with_their_pages_keep_their_places) {
  add_many(1'200, 40);
  session_.sql(
      "UPDATE outbox_events SET payload = to_json(repeat('x', 100000))::text"
      " WHERE payload::int % 100 = 0");
  const auto relay = start();
  const Spy spy(broker_, "all");
  ASSERT_TRUE(spy.wait_for(1'200)) << errors();
  auto expected = numbers(0, 1'200, 40);
  for (std::size_t i = 0; i < expected.size(); i += 5) {  // 0, 200, 400 …
    expected[i] = '"' + std::string(100'000, 'x') + '"';
  }
  EXPECT_EQ(spy.bodies("o-0"), expected);
  EXPECT_TRUE(all_sent()) << errors();
}

TEST_F(PostgresRelay, a_new_owner_reads_from_the_checkpoint_and_a_sweep_finds_what_is_behind_it) {
  add_many(100, 20);
  {
    const auto relay = start();
    ASSERT_TRUE(all_sent()) << errors();
  }
  EXPECT_EQ(session_.sql("SELECT count(*) FROM outbox_events e JOIN outbox_lane l USING (lane)"
                         " WHERE pg_visible_in_snapshot(e.xid, l.seen)"),
            "100");
  // Nothing of ours writes that: the checkpoint calls it settled.
  session_.sql("UPDATE outbox_events SET status = 'PENDING' WHERE payload = '7'");
  const Spy spy(broker_, "all");
  ASSERT_TRUE(spy.wait_for(100));
  {
    const auto relay = start();
    const auto id = add("o-1");
    ASSERT_TRUE(becomes("SELECT status FROM outbox_events WHERE event_id = '" + id + "'", "SENT"));
    ASSERT_TRUE(sleeps(*relay));
    EXPECT_EQ(session_.sql("SELECT count(*) FROM outbox_events WHERE status = 'PENDING'"), "1");
    EXPECT_EQ(relay->stats().published, 1U);
    EXPECT_EQ(relay->stats().swept, 0U);
  }
  auto with = options();
  with.sweep_every = 100ms;
  const auto relay = start(with);
  EXPECT_TRUE(all_sent()) << errors();
  EXPECT_TRUE(poll_until([&] { return relay->stats().swept == 1; }));
}

TEST_F(PostgresRelay, a_lane_that_reads_from_further_back_shows_no_other_lane_an_event_again) {
  add_many(100, 20);
  {
    const auto relay = start();
    ASSERT_TRUE(all_sent()) << errors();
  }
  // As if all were in memory and had no mark yet. One lane begins anew.
  session_.sql("UPDATE outbox_events SET status = 'PENDING'");
  const std::string lane = "(SELECT lane FROM outbox_events WHERE payload = '7')";
  session_.sql("UPDATE outbox_lane SET seen = NULL WHERE lane = " + lane);
  const auto relay = start();
  const auto count = [&](const std::string& where) {
    return session_.sql("SELECT count(*) FROM outbox_events WHERE " + where);
  };
  ASSERT_TRUE(poll_until([&] { return count("status = 'PENDING' AND lane = " + lane) == "0"; }))
      << errors();
  const auto id = add("o-1");
  ASSERT_TRUE(poll_until([&] { return status(id) == "SENT"; })) << errors();
  ASSERT_TRUE(sleeps(*relay)) << errors();
  EXPECT_EQ(count("status = 'PENDING'"),
            count("lane <> " + lane + " AND event_id <> '" + id + "'"));
}

TEST_F(PostgresRelay, an_unroutable_event_fails_holds_its_aggregate_and_is_released_by_a_retry) {
  const auto relay = start();
  const Spy spy(broker_, "all");
  const auto lost = add("o-1", "{}", "LostOrder");
  for (int i = 0; i < 10; ++i) add("o-1", std::to_string(i));
  const auto other = add("o-2");
  ASSERT_TRUE(poll_until([&] { return status(lost) == "FAILED"; })) << errors();
  ASSERT_TRUE(poll_until([&] { return status(other) == "SENT"; })) << errors();
  EXPECT_EQ(session_.sql("SELECT retry_count || ' ' || next_retry_at FROM outbox_events"
                         " WHERE status = 'FAILED'"),
            "3 infinity");
  ASSERT_TRUE(
      becomes("SELECT count(*) FROM outbox_events WHERE status = 'PENDING' AND"
              " next_retry_at = 'infinity'",
              "10"));
  EXPECT_EQ(spy.count(), 1U);
  Topology more = shop_topology();
  more.bindings.push_back({.exchange = "shop", .pattern = "lost.#", .queue = "all"});
  broker_->declare(more, soon()).value();
  session_.sql(
      "UPDATE outbox_events SET status = 'PENDING', retry_count = 0, next_retry_at = now()"
      " WHERE status = 'FAILED'");
  ASSERT_TRUE(spy.wait_for(12)) << errors();
  auto expected = numbers(0, 10, 1);
  expected.insert(expected.begin(), "{}");
  EXPECT_EQ(spy.bodies("o-1"), expected);
  EXPECT_TRUE(all_sent());
}

TEST_F(PostgresRelay, a_full_queue_delays_only_its_route_and_uses_no_attempt) {
  const auto relay = start();
  const Spy spy(broker_, "all");
  for (int i = 0; i < 6; ++i) add("f-" + std::to_string(i), "{}", "FullStock");
  // They leave the memory of the relay: so a new owner knows of them, and `seen` goes on.
  ASSERT_TRUE(becomes("SELECT count(*) FROM outbox_events WHERE next_retry_at IS NOT NULL", "4"))
      << errors();
  for (int i = 0; i < 20; ++i) add("o-" + std::to_string(i));
  ASSERT_TRUE(spy.wait_for(20)) << errors();
  const Spy drain(broker_, "full");
  ASSERT_TRUE(drain.wait_for(6)) << errors();
  EXPECT_TRUE(all_sent()) << errors();
  EXPECT_EQ(session_.sql("SELECT max(retry_count) FROM outbox_events"), "0");
}

// Far longer than all attempts would take: 20 and 40 ms, ± 20%. So long, too, that the relay asks
// as seldom as it ever does. Within two seconds in one of three outages, because the machine may be
// busy.
TEST_F(PostgresRelay, after_a_long_outage_of_the_broker_all_is_published_within_two_seconds) {
  bool in_time = false;
  for (int outage = 0; outage < 3 && !in_time; ++outage) {
    const auto folder = dir_ / ("later" + std::to_string(outage));
    const auto broker = Broker::open("embedded:" + (folder / "broker.db").string()).value();
    auto with = options();
    with.topology = shop_topology();
    Relay relay(locks_, database_.url(), broker, with);
    relay.start().value();
    add_many(200, 40);
    const auto since = BootClock::now();
    poll_until([&] { return BootClock::now() - since > 3'500ms; });
    EXPECT_EQ(session_.sql("SELECT max(retry_count) || ' ' || count(*) FROM outbox_events"
                           " WHERE status = 'PENDING' AND next_retry_at IS NULL"),
              "0 200");
    std::filesystem::create_directory(folder);
    const auto back = BootClock::now();
    ASSERT_TRUE(all_sent()) << errors();
    in_time = BootClock::now() - back < 2s;
  }
  EXPECT_TRUE(in_time);
  EXPECT_EQ(session_.sql("SELECT max(retry_count) FROM outbox_events"), "0");
}

TEST_F(PostgresRelay, an_event_whose_row_is_moved_to_another_slot_is_marked) {
  add_many(300, 30);
  const auto relay = start();
  // As retention does it: rows that the relay is marking are passed over, so that neither waits for
  // the other.
  for (int i = 0; i < 20; ++i) {
    session_.sql(
        "UPDATE outbox_events e SET slot = (e.slot + 1) & 7 FROM (SELECT slot, position FROM "
        "outbox_events WHERE status = 'PENDING' FOR UPDATE SKIP LOCKED) o "
        "WHERE e.slot = o.slot AND e.position = o.position");
  }
  EXPECT_TRUE(all_sent()) << errors();
}

TEST_F(PostgresRelay, an_event_that_is_moved_between_its_publication_and_its_mark_is_sent_once) {
  add_many(300, 30);
  Session retention(database_.url());
  std::atomic<bool> moved{false};
  auto with = options();
  with.on_event = [&](const RelayEvent& event) {  // it is confirmed, and not marked yet
    if (event.kind != RelayEvent::Kind::published || moved.exchange(true)) return;
    retention.sql("UPDATE outbox_events SET slot = (slot + 1) & 7 WHERE status = 'PENDING'");
  };
  const auto relay = start(with);
  EXPECT_TRUE(all_sent()) << errors();
  relay->stop();
  EXPECT_EQ(relay->stats().published, 300U);
  EXPECT_EQ(errors(), "");
}

TEST_F(PostgresRelay, an_owner_that_is_overtaken_before_it_marks_marks_nothing) {
  Session newer(database_.url());
  std::atomic<bool> overtaken{false};
  auto with = options();
  with.on_event = [&](const RelayEvent& event) {  // it is confirmed, and not marked yet
    if (event.kind != RelayEvent::Kind::published || overtaken.exchange(true)) return;
    newer.sql("UPDATE outbox_lane SET token = token + 1000000");
  };
  const Spy spy(broker_, "all");
  const auto former = start(with);
  ASSERT_TRUE(sleeps(*former)) << errors();
  const auto id = add("o-1");
  ASSERT_TRUE(poll_until([&] { return former->stats().lanes_owned == 0; })) << errors();
  EXPECT_TRUE(spy.wait_for(1));
  EXPECT_EQ(status(id), "PENDING");
  former->stop();
  session_.sql("UPDATE outbox_lane SET token = 0");
  const auto relay = start();
  EXPECT_TRUE(all_sent()) << errors();
}

TEST_F(PostgresRelay, two_outboxes_of_one_database_do_not_share_lanes) {
  session_.sql("CREATE SCHEMA other; SET search_path = other");
  install_outbox(session_.get()).value();
  add("o-1", "\"other\"");
  session_.sql("SET search_path = public");
  add("o-1", "\"public\"");
  const std::string other_url = database_.url() + "?options=-csearch_path%3Dother";
  const auto one = start();
  const auto two = start(options(), other_url);
  const Spy spy(broker_, "all");
  EXPECT_TRUE(spy.wait_for(2)) << errors();
  EXPECT_NE(one->stats().set, two->stats().set);
}

TEST_F(PostgresRelay, a_dump_that_is_restored_into_a_younger_cluster_is_published) {
  // Many transactions, so that the xids of the dump are still to come in the other cluster.
  session_.sql(
      "DO $$ BEGIN FOR i IN 1..4000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP;"
      " END $$");
  add_many(50, 10);
  {
    const auto relay = start();
    ASSERT_TRUE(all_sent()) << errors();
  }
  const Spy spy(broker_, "all");
  ASSERT_TRUE(spy.wait_for(50));
  add("o-1", "100");
  add("o-1", "101");
  add("o-2", "102");
  const PostgresServer younger;
  const auto file = (dir_ / "dump.sql").string();
  const auto dumped = run({.argv = {"pg_dump", "--no-owner", "-f", file, database_.url()}});
  ASSERT_TRUE(dumped.status.success()) << dumped.err;
  const auto restored =
      run({.argv = {"psql", "-v", "ON_ERROR_STOP=1", "-qf", file, younger.url()}});
  ASSERT_TRUE(restored.status.success()) << restored.err;
  ASSERT_LT(std::stoll(younger.sql("SELECT pg_current_xact_id()")),
            std::stoll(session_.sql("SELECT min(xid::text::bigint) FROM outbox_events")));
  auto with = options();
  with.name = "restored";
  const auto relay = start(with, younger.url());
  ASSERT_TRUE(spy.wait_for(53)) << errors();
  EXPECT_EQ(spy.bodies("o-1").back(), "101");
  EXPECT_TRUE(poll_until([&] {
    return younger.sql("SELECT count(*) FROM outbox_events WHERE status <> 'SENT'") == "0";
  }));
  younger.sql("SELECT outbox_add('OrderPlaced', 'o-3', exchange => 'shop')");
  EXPECT_TRUE(spy.wait_for(54)) << errors();
}

// As after a dump from a promoted standby or a copy of the files: the identifier is the same, and
// the checkpoint is ahead of the transactions here.
TEST_F(PostgresRelay, a_dump_of_a_cluster_that_went_its_own_way_is_published_in_order) {
  const auto first = add("o-1", "1");
  session_.sql("UPDATE outbox_lane SET seen = '999999999:999999999:'");
  const Spy spy(broker_, "all");
  {
    const auto relay = start();
    ASSERT_TRUE(poll_until([&] { return relay->stats().lanes_owned == 16; })) << errors();
    EXPECT_EQ(session_.sql("SELECT count(*) FROM outbox_lane WHERE seen::text LIKE '9999999%'"),
              "0")
        << "also for the next owner, to whose xids those may be near";
    add("o-1", "2");
    ASSERT_TRUE(spy.wait_for(2)) << status(first) << " " << errors();
    EXPECT_EQ(spy.bodies("o-1"), (std::vector<std::string>{"1", "2"}));
    EXPECT_TRUE(all_sent());
  }
  const auto next = start();
  add("o-1", "3");
  EXPECT_TRUE(spy.wait_for(3)) << errors();
  EXPECT_EQ(spy.count(), 3U);
}

TEST_F(PostgresRelay, a_newer_token_is_blamed_on_another_store_or_another_name) {
  session_.sql("UPDATE outbox_lane SET token = 1000000");
  const auto relay = start();
  EXPECT_TRUE(poll_until([&] { return errors().find("newer token") != std::string::npos; }));
  EXPECT_NE(errors().find("(--store) and the same --name?"), std::string::npos) << errors();
}

// Two events with one position would be marked as one.
TEST_F(PostgresRelay, a_sequence_that_is_behind_the_events_is_told_and_nothing_is_lost) {
  for (int i = 0; i < 3; ++i) add("o-1");
  session_.sql("ALTER SEQUENCE outbox_events_position_seq RESTART");
  add("o-1");
  const auto relay = start();
  EXPECT_TRUE(poll_until([&] { return errors().find("sequence") != std::string::npos; }));
  EXPECT_EQ(session_.sql("SELECT count(*) FROM outbox_events WHERE status = 'SENT'"), "0");
  session_.sql("DELETE FROM outbox_events WHERE ctid IN (SELECT max(ctid) FROM outbox_events)");
  session_.sql("SELECT setval('outbox_events_position_seq', 3)");
  add("o-1");
  EXPECT_TRUE(all_sent());
}

// A session keeps the plans of its statements: what was planned for an empty table would read all
// of a long one.
TEST(PostgresLaneTables, make_their_plans_anew_whenever_they_show_that_they_are_read) {
  const PostgresServer server({.settings = {{"log_statement", "all"}}});
  install_outbox(Session(server.url()).get()).value();
  const auto tables = relay::make_lane_tables({.url = server.url()}).value();
  tables->open(soon()).value();
  const std::vector<relay::OwnedLane> lanes{{.number = 3, .token = 1}};
  tables->take_over(lanes.front()).value();
  const auto plans_discarded = [&] {
    const std::string log = server.log();
    const std::string statement = "DISCARD PLANS";
    std::size_t count = 0;
    for (std::size_t at = 0; (at = log.find(statement, at)) != log.npos; ++at) ++count;
    return count;
  };
  for (std::size_t times = 1; times <= 3; ++times) {
    tables->show(lanes).value();
    EXPECT_TRUE(poll_until([&] { return plans_discarded() == times; })) << server.log();
  }
}

TEST_F(PostgresRelay, what_is_missing_or_too_new_is_told) {
  const auto tells = [&](const std::string& part) {
    return poll_until([&] { return errors().find(part) != std::string::npos; });
  };
  session_.sql("UPDATE outbox_version SET version = 99");
  {
    const auto relay = start();
    EXPECT_TRUE(tells("newer Baton")) << errors();
  }
  const Database empty;
  const auto relay = start(options(), empty.url());
  EXPECT_TRUE(tells("baton outbox install")) << errors();
}

}  // namespace
}  // namespace baton::test
