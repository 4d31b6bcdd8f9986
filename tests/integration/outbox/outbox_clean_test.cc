// Retention: what leaves an outbox, and what does not.

#include "outbox/clean.h"

#include <future>

#include "integration/outbox/outbox_database.h"

namespace baton::outbox {
namespace {

using namespace std::chrono_literals;
using As = test::OutboxDatabase::As;

constexpr std::chrono::hours kDay{24};

std::string said(const Cleaned& cleaned) {
  std::string text = "removed " + std::to_string(cleaned.removed) + ", moved " +
                     std::to_string(cleaned.moved) + ", discarded " +
                     std::to_string(cleaned.discarded);
  for (const auto& why : cleaned.postponed) text += ", " + why;
  return text;
}

TEST(OutboxCleanOnSqlite, what_was_settled_longer_ago_than_the_retention_is_removed) {
  const test::OutboxDatabase db(sql::Kind::sqlite);
  const auto failed = db.add("a", {.status = "FAILED", .next = "held", .age = 5 * kDay});
  const auto pending = db.add("a", {.next = "held", .age = 5 * kDay});
  db.add("b", {.status = "SENT", .age = 4 * kDay});
  db.add("b", {.status = "DISCARDED", .age = 4 * kDay});
  const auto young = db.add("b", {.status = "SENT", .age = 2 * kDay});
  EXPECT_EQ(said(clean(db.connection()).value()), "removed 2, moved 0, discarded 0");
  EXPECT_EQ(db.ask("SELECT group_concat(event_id, ' ') FROM outbox_events ORDER BY position"),
            failed + " " + pending + " " + young);
  EXPECT_EQ(said(clean(db.connection()).value()), "removed 0, moved 0, discarded 0");
  EXPECT_EQ(clean(db.connection(), {.retention = 24h}).value().removed, 1);
}

TEST(OutboxCleanOnSqlite, much_is_removed_in_many_short_transactions) {
  const test::OutboxDatabase db(sql::Kind::sqlite);
  db.add("a", {.status = "SENT", .age = 4 * kDay});
  db.run(
      "INSERT INTO outbox_events (status, created_at, event_id, type, aggregate_id, routing_key)"
      " WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 3499)"
      " SELECT 'SENT', e.created_at, n, 'T', 'a', 'k' FROM (SELECT * FROM outbox_events) e, c");
  const auto part = clean(db.connection(), {.most = 2'000}).value();
  EXPECT_EQ(part.removed, 2'000);
  EXPECT_TRUE(part.more);
  const auto rest = clean(db.connection()).value();
  EXPECT_EQ(rest.removed, 1'500);
  EXPECT_FALSE(rest.more);
}

class OutboxClean : public ::testing::Test {
 protected:
  // An event of so many days ago, in the slot of its day.
  std::string add(int days_ago, As as = {.status = "SENT"}) {
    as.age = days_ago * kDay;
    auto id = db_.add("aggregate", as);
    db_.run("UPDATE outbox_events SET slot = " + slot(days_ago) + " WHERE event_id = '" + id +
            "' AND created_at < clock_timestamp() - interval '1 hour'");
    return id;
  }
  std::string slot(int days_ago) {
    return db_.ask("SELECT ((floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint - " +
                   std::to_string(days_ago) + ") & 7)::text");
  }
  std::string slot_of(const std::string& id) {
    return db_.ask("SELECT string_agg(slot::text, ' ') FROM outbox_events WHERE event_id = '" + id +
                   "'");
  }
  std::string count() { return db_.ask("SELECT count(*) FROM outbox_events"); }
  std::string cleaned(const CleanOptions& options = {}) {
    return said(clean(db_.connection(), options).value());
  }
  void wait_until_somebody_waits_for_a_slot() {
    ASSERT_TRUE(test::poll_until([&] {
      return db_.ask(
                 "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
                 " WHERE d.datname = current_database() AND mode = 'AccessExclusiveLock'"
                 " AND NOT granted") != "0";
    }));
  }

  test::OutboxDatabase db_{sql::Kind::postgres};
};

TEST_F(OutboxClean, slots_whose_days_are_over_are_emptied) {
  for (int day = 0; day <= 7; ++day) add(day);
  EXPECT_EQ(cleaned(), "removed 4, moved 0, discarded 0");
  EXPECT_EQ(cleaned(), "removed 0, moved 0, discarded 0");
  EXPECT_EQ(cleaned({.retention = 6 * kDay}), "removed 0, moved 0, discarded 0");
  EXPECT_EQ(cleaned({.retention = 1 * kDay}), "removed 2, moved 0, discarded 0");
  EXPECT_EQ(count(), "2");
}

TEST_F(OutboxClean, six_days_are_kept_if_asked_for_and_no_more_can_be) {
  for (int day = 0; day <= 7; ++day) add(day);
  EXPECT_EQ(cleaned({.retention = 6 * kDay}), "removed 1, moved 0, discarded 0");
  for (const Millis retention : {Millis(7 * kDay), Millis(0)}) {
    const auto refused = clean(db_.connection(), {.retention = retention});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::bad_request);
  }
}

TEST_F(OutboxClean, what_is_not_settled_moves_to_today_and_keeps_its_order) {
  const auto failed = add(6, {.status = "FAILED", .next = "held", .attempts = 10});
  const auto held = add(6, {.next = "held"});
  const auto fresh = add(5);
  db_.run("UPDATE outbox_events SET status = 'PENDING' WHERE event_id = '" + fresh + "'");
  add(6);
  const auto newest = db_.add("aggregate");
  const std::string order =
      "SELECT string_agg(event_id || ' ' || lane || ' ' || position || ' ' || xid, ','"
      " ORDER BY lane, position) FROM outbox_events WHERE status <> 'SENT'";
  const auto before = db_.ask(order);
  EXPECT_EQ(cleaned(), "removed 1, moved 3, discarded 0");
  EXPECT_EQ(db_.ask(order), before);
  for (const auto& id : {failed, held, fresh, newest}) EXPECT_EQ(slot_of(id), slot(0));
  EXPECT_EQ(db_.state(failed), "FAILED 10 held");
  EXPECT_EQ(db_.state(held), "PENDING 0 held");
}

TEST_F(OutboxClean, more_than_a_batch_is_moved_to_the_end) {
  add(6, {});
  db_.run(
      "INSERT INTO outbox_events (lane, slot, created_at, event_id, type, aggregate_type,"
      " aggregate_id, exchange, routing_key, payload, headers, version)"
      " SELECT lane, slot, created_at, gen_random_uuid(), 'T', '', 'a', '', 'k', '{}', '{}', 1"
      " FROM outbox_events, generate_series(1, 2500)");
  EXPECT_EQ(cleaned(), "removed 0, moved 2501, discarded 0");
  EXPECT_EQ(db_.ask("SELECT count(*) FROM outbox_events WHERE slot = " + slot(0)), "2501");
}

TEST_F(OutboxClean, of_two_events_with_one_id_the_older_is_discarded) {
  const auto id = add(6, {.next = "held"});
  const auto position = db_.ask("SELECT position FROM outbox_events");
  ASSERT_EQ(db_.add("aggregate", {.id = id}), id);
  db_.run("UPDATE outbox_events SET next_retry_at = 'infinity' WHERE position = " + position);
  EXPECT_EQ(cleaned(), "removed 1, moved 0, discarded 1");
  EXPECT_EQ(slot_of(id), slot(0)) << "the newer one, and nothing else";
  EXPECT_NE(db_.ask("SELECT position FROM outbox_events"), position);
}

TEST_F(OutboxClean, a_slot_with_an_event_that_is_too_young_stays) {
  const auto old = add(6);
  db_.run("UPDATE outbox_events SET created_at = clock_timestamp() - interval '1 day'");
  EXPECT_EQ(cleaned(), "removed 0, moved 0, discarded 0, slot " + slot(6) +
                           " has events younger than the retention");
  EXPECT_EQ(count(), "1");
}

TEST_F(OutboxClean, a_slot_that_gets_an_event_before_it_is_locked_is_not_emptied) {
  add(6);
  const auto writer = db_.open();
  auto transaction = sql::Transaction::begin(*writer).value();
  transaction
      .query(
          "INSERT INTO outbox_events (lane, slot, created_at, event_id, type, aggregate_type,"
          " aggregate_id, exchange, routing_key, payload, headers, version)"
          " SELECT lane, slot, created_at, gen_random_uuid(), type, '', 'late', '', 'k', '{}',"
          " '{}', 1 FROM outbox_events")
      .value();
  const auto other = db_.open();
  auto cleaner = std::async(std::launch::async, [&] {
    return said(clean(*other, {.lock_timeout = test::patience}).value());
  });
  wait_until_somebody_waits_for_a_slot();
  transaction.commit().value();
  EXPECT_EQ(cleaner.get(),
            "removed 0, moved 0, discarded 0, slot " + slot(6) + " has events that are PENDING");
  EXPECT_EQ(count(), "2");
  EXPECT_EQ(cleaned(), "removed 1, moved 1, discarded 0");
  EXPECT_EQ(db_.ask("SELECT aggregate_id || ' ' || status FROM outbox_events"), "late PENDING");
}

TEST_F(OutboxClean, a_reader_of_a_slot_only_delays_it_and_is_not_disturbed) {
  add(6);
  const auto reader = db_.open();
  auto transaction = sql::Transaction::begin(*reader).value();
  EXPECT_EQ(transaction.query("SELECT FROM outbox_events").value().size(), 1U);
  EXPECT_EQ(cleaned(), "removed 0, moved 0, discarded 0, slot " + slot(6) + " is in use");
  EXPECT_EQ(transaction.query("SELECT FROM outbox_events").value().size(), 1U);
  transaction.commit().value();
  EXPECT_EQ(cleaned(), "removed 1, moved 0, discarded 0");
}

TEST_F(OutboxClean, an_event_that_somebody_else_changes_is_left_for_the_next_time) {
  const auto id = add(6, {.next = "held"});
  const auto relay = db_.open();
  auto transaction = sql::Transaction::begin(*relay).value();
  transaction.query("SELECT FROM outbox_events FOR UPDATE").value();
  EXPECT_EQ(cleaned(),
            "removed 0, moved 0, discarded 0, slot " + slot(6) + " has events that are PENDING");
  transaction.commit().value();
  EXPECT_EQ(cleaned(), "removed 0, moved 1, discarded 0");
}

}  // namespace
}  // namespace baton::outbox
