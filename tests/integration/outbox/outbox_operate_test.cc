// What operators do to an outbox, the same on SQLite and PostgreSQL.

#include "outbox/operate.h"

#include "integration/outbox/outbox_database.h"
#include "outbox/health.h"

namespace baton::outbox {
namespace {

using namespace std::chrono_literals;

class OutboxOperate : public ::testing::TestWithParam<sql::Kind> {
 protected:
  using As = test::OutboxDatabase::As;

  std::vector<EventRow> list(const EventFilter& filter = {}, const EventPage& page = {}) {
    return list_events(db_.connection(), outbox_events(), filter, page).value();
  }
  std::string aggregates(const EventFilter& filter, const EventPage& page = {}) {
    std::string all;
    for (const auto& row : list(filter, page)) all += row.aggregate + " ";
    return all;
  }
  std::int64_t change(Action action, const EventFilter& filter) {
    const auto count = count_events(db_.connection(), action, filter).value();
    const auto changed = change_events(db_.connection(), action, filter, count.last).value();
    EXPECT_EQ(changed, count.count) << "the dry run says what is done";
    return changed;
  }
  Verdict verdict() { return judge(read_health(db_.connection()).value()); }

  test::OutboxDatabase db_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(On, OutboxOperate,
                         ::testing::Values(sql::Kind::sqlite, sql::Kind::postgres),
                         [](const auto& tested) {
                           return std::string(tested.param == sql::Kind::sqlite ? "sqlite"
                                                                                : "postgres");
                         });

TEST_P(OutboxOperate, events_are_listed_by_each_filter_in_their_order) {
  const auto first = db_.add("a", {.status = "FAILED",
                                   .next = "held",
                                   .error = "NO_ROUTE: Größe \"x\"",
                                   .attempts = 10,
                                   .age = 2h});
  db_.add("b", {.status = "SENT", .age = 3h});
  db_.add("a", {.next = "held"});
  const auto last = db_.add("c", {.type = "DocumentDeleted"});
  EXPECT_EQ(aggregates({}), "a b a c ");
  EXPECT_EQ(aggregates({.ids = {first, last}}), "a c ");
  EXPECT_EQ(aggregates({.statuses = {"PENDING", "FAILED"}}), "a a c ");
  EXPECT_EQ(aggregates({.type = "DocumentDeleted"}), "c ");
  EXPECT_EQ(aggregates({.aggregate = "a"}), "a a ");
  EXPECT_EQ(aggregates({.error = "no_route"}), "a ");
  EXPECT_EQ(aggregates({.older_than = 150min}), "b ");
  EXPECT_EQ(aggregates({.statuses = {"SENT"}, .aggregate = "a"}), "");
  EXPECT_EQ(aggregates({.aggregate = "a' OR '1' = '1"}), "");
}

TEST_P(OutboxOperate, pages_go_on_where_the_one_before_has_ended) {
  for (const auto* aggregate : {"a", "b", "c", "d", "e"}) db_.add(aggregate);
  const auto first = list({}, {.limit = 2});
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(aggregates({}, {.after = first.back().position, .limit = 2}), "c d ");
}

TEST_P(OutboxOperate, an_event_is_shown_with_all_that_is_known_of_it) {
  const auto id = db_.add(
      "a", {.status = "FAILED", .next = "held", .error = "NO_ROUTE", .attempts = 10, .age = 1h});
  EXPECT_EQ(list({.ids = {id}}).front().payload, "") << "lists leave payloads where they are";
  const auto row = list({.ids = {id}}, {.with_payload = true}).front();
  EXPECT_EQ(row.id, id);
  EXPECT_EQ(row.status, "FAILED");
  EXPECT_EQ(row.attempts, 10);
  EXPECT_FALSE(row.held) << "it is not, others are";
  EXPECT_EQ(row.error, "NO_ROUTE");
  EXPECT_EQ(std::chrono::floor<std::chrono::hours>(row.age()), 1h);
  EXPECT_FALSE(row.settled_ms);
  EXPECT_EQ(row.type, "DocumentUploaded");
  EXPECT_EQ(row.exchange, "documents");
  EXPECT_EQ(row.routing_key, "document.uploaded");
  EXPECT_EQ(row.payload, R"({"a":1})");
  EXPECT_EQ(row.headers, "{}");
  EXPECT_EQ(row.version, 1);
}

TEST_P(OutboxOperate, a_retried_event_begins_anew_and_its_followers_stay_behind_it) {
  const auto failed = db_.add("a", {.status = "FAILED", .next = "held", .attempts = 10});
  const auto held = db_.add("a", {.next = "held"});
  const auto later = db_.add("b", {.next = "later", .attempts = 3});
  const auto skipped = db_.add("c", {.status = "FAILED", .attempts = 10});
  const auto fresh = db_.add("d");
  const auto sent = db_.add("e", {.status = "SENT"});
  EXPECT_EQ(change(Action::retry, {}), 3);
  EXPECT_EQ(db_.state(failed), "PENDING 0 due");
  EXPECT_EQ(db_.state(held), "PENDING 0 held");
  EXPECT_EQ(db_.state(later), "PENDING 0 due");
  EXPECT_EQ(db_.state(skipped), "PENDING 0 due");
  EXPECT_EQ(db_.state(fresh), "PENDING 0 -");
  EXPECT_EQ(db_.state(sent), "SENT 0 -");
}

TEST_P(OutboxOperate, a_discarded_event_leaves_the_index_so_that_its_followers_go_on) {
  const auto failed = db_.add("a", {.status = "FAILED", .next = "held", .attempts = 10});
  const auto held = db_.add("a", {.next = "held"});
  const auto other = db_.add("b", {.status = "FAILED", .next = "held", .attempts = 10});
  EXPECT_EQ(change(Action::discard, {.ids = {failed}}), 1);
  EXPECT_EQ(db_.state(failed), "DISCARDED 10 -");
  EXPECT_EQ(db_.state(held), "PENDING 0 held");
  EXPECT_EQ(db_.state(other), "FAILED 10 held");
}

TEST_P(OutboxOperate, what_a_relay_has_not_tried_yet_is_not_discarded) {
  const auto fresh = db_.add("a");
  const auto held = db_.add("b", {.next = "held"});
  EXPECT_EQ(change(Action::discard, {}), 1);
  EXPECT_EQ(db_.state(fresh), "PENDING 0 -");
  EXPECT_EQ(db_.state(held), "DISCARDED 0 -");
}

TEST_P(OutboxOperate, a_dry_run_counts_by_error_and_changes_nothing) {
  for (int i = 0; i < 3; ++i) db_.add("a", {.status = "FAILED", .next = "held", .error = "x"});
  const auto other = db_.add("b", {.status = "FAILED", .next = "held", .error = "y", .age = 1h});
  const auto count = count_events(db_.connection(), Action::discard, {}).value();
  EXPECT_EQ(count.count, 4);
  ASSERT_EQ(count.groups.size(), 2U);
  EXPECT_EQ(count.groups[0].error, "x");
  EXPECT_EQ(count.groups[0].count, 3);
  EXPECT_EQ(count.groups[1].error, "y");
  EXPECT_EQ(count.groups[1].status, "FAILED");
  EXPECT_EQ(std::chrono::floor<std::chrono::hours>(count.groups[1].oldest), 1h);
  EXPECT_EQ(db_.state(other), "FAILED 0 held");
  EXPECT_EQ(count_events(db_.connection(), Action::retry, {.type = "None"}).value().count, 0);
}

TEST_P(OutboxOperate, what_has_failed_after_the_dry_run_is_left_alone) {
  const auto before = db_.add("a", {.status = "FAILED", .next = "held"});
  const auto count = count_events(db_.connection(), Action::discard, {}).value();
  const auto after = db_.add("b", {.status = "FAILED", .next = "held"});
  EXPECT_EQ(change_events(db_.connection(), Action::discard, {}, count.last).value(), 1);
  EXPECT_EQ(db_.state(before), "DISCARDED 0 -");
  EXPECT_EQ(db_.state(after), "FAILED 0 held");
}

TEST_P(OutboxOperate, more_than_a_batch_is_changed_to_the_end) {
  for (int i = 0; i < 3; ++i) db_.add("a", {.status = "FAILED", .next = "held"});
  const std::string number = db_.on_postgres() ? "gen_random_uuid()" : "hex(randomblob(16))";
  const std::string many =
      db_.on_postgres()
          ? "generate_series(1, 2500) n"
          : "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2500)"
            " SELECT n FROM c)";
  db_.run(
      "INSERT INTO outbox_events (lane, slot, status, next_retry_at, event_id, type,"
      " aggregate_type, aggregate_id, exchange, routing_key, payload, headers, version)"
      " SELECT e.lane, e.slot, e.status, e.next_retry_at, " +
      number +
      ", e.type, '', 'a', '', 'k', '{}', '{}', 1 FROM (SELECT * FROM outbox_events LIMIT 1) e, " +
      many);
  EXPECT_EQ(change(Action::retry, {.type = "DocumentUploaded"}), 2503);
  EXPECT_EQ(change(Action::discard, {}), 2503);
  EXPECT_EQ(db_.ask("SELECT count(*) FROM outbox_events WHERE status = 'DISCARDED'"), "2503");
}

TEST_P(OutboxOperate, status_says_in_one_line_what_is_stuck) {
  EXPECT_EQ(verdict().why, "no relay has ever read any lane; nothing waits there");
  EXPECT_TRUE(verdict().stuck);
  db_.read_lanes(0s);
  EXPECT_EQ(verdict().why, "all events are published");
  EXPECT_FALSE(verdict().stuck);
  db_.add("a", {.age = 12min});
  EXPECT_EQ(verdict().why,
            "relays read, but 1 event waits, the oldest for 12 min: see to the broker, and to the"
            " log of the relays");
  EXPECT_TRUE(verdict().stuck);
  db_.read_lanes(50s);
  const auto unread = verdict();
  EXPECT_EQ(unread.why.find("no relay reads any lane since 5"), 0U) << unread.why;
  EXPECT_NE(unread.why.find("; 1 event waits there, the oldest for 12 min"), std::string::npos)
      << unread.why;
  db_.read_lanes(0s);
  db_.run("UPDATE outbox_events SET status = 'SENT'");
  db_.add("b", {.next = "later", .error = "NO_ROUTE", .attempts = 1});
  db_.add("b", {.next = "held"});
  EXPECT_EQ(verdict().why, "1 event is being retried and holds back 1 more (NO_ROUTE)");
  EXPECT_FALSE(verdict().stuck) << "nobody has to do anything yet";
  db_.add("c", {.next = "later", .error = "NO_ROUTE", .attempts = 5, .age = 12min});
  EXPECT_EQ(verdict().why,
            "2 events are being retried and hold back 1 more (NO_ROUTE), the oldest for 12 min");
  EXPECT_TRUE(verdict().stuck);
  db_.run("DELETE FROM outbox_events WHERE aggregate_id = 'c'");
  db_.run("UPDATE outbox_events SET status = 'FAILED' WHERE last_error IS NOT NULL");
  EXPECT_EQ(verdict().why, "1 event has failed and holds back 1 more (NO_ROUTE)");
  EXPECT_TRUE(verdict().stuck);
}

TEST_P(OutboxOperate, status_counts_what_waits_what_is_in_trouble_and_what_is_done) {
  db_.read_lanes(0s);
  db_.add("a", {.status = "SENT"});
  db_.add("a", {.status = "DISCARDED"});
  db_.add("b", {.status = "FAILED", .next = "held", .age = 2h});
  db_.add("b", {.next = "held"});
  db_.add("c", {.status = "FAILED"});
  db_.add("d", {.next = "now"});
  db_.add("e");
  db_.add("f");
  const auto health = read_health(db_.connection()).value();
  EXPECT_EQ(health.lanes.size(), db_.on_postgres() ? 16U : 1U);
  EXPECT_EQ(health.waiting.count, 2);
  EXPECT_EQ(health.retrying.count, 1);
  EXPECT_EQ(health.held.count, 1);
  EXPECT_EQ(health.held_by_failed, 1);
  EXPECT_EQ(health.failed.count, 2);
  EXPECT_EQ(std::chrono::floor<std::chrono::hours>(health.failed.oldest), 2h);
  EXPECT_EQ(health.sent, 1);
  EXPECT_EQ(health.discarded, 1);
  EXPECT_FALSE(health.estimated);
}

TEST_P(OutboxOperate, a_database_without_the_tables_or_with_newer_ones_is_refused) {
  db_.run("UPDATE outbox_version SET version = 99");
  const auto newer = list_events(db_.connection(), outbox_events(), {});
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().code, Code::bad_store);
  EXPECT_NE(newer.error().message.find("newer Baton"), std::string::npos) << newer.error().message;
  db_.run("DROP TABLE outbox_version");
  const auto missing = read_health(db_.connection());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::bad_store);
  EXPECT_NE(missing.error().message.find("baton outbox install --database URL"), std::string::npos)
      << missing.error().message;
}

class OutboxOnPostgres : public ::testing::Test {
 protected:
  test::OutboxDatabase db_{sql::Kind::postgres};
};

TEST_F(OutboxOnPostgres, an_event_in_a_lane_that_no_relay_knows_is_told) {
  db_.read_lanes(0s);
  db_.add("a", {.age = 12min});
  db_.run("UPDATE outbox_events SET lane = 77");
  const Verdict verdict = judge(read_health(db_.connection()).value());
  EXPECT_TRUE(verdict.stuck);
  EXPECT_EQ(verdict.why,
            "no relay has ever read lane 77; 1 event waits there, the oldest for 12 min");
}

TEST_F(OutboxOnPostgres, an_event_that_somebody_else_changes_is_passed_over) {
  const auto locked = db_.add("a", {.status = "FAILED", .next = "held"});
  const auto free = db_.add("b", {.status = "FAILED", .next = "held"});
  const auto relay = db_.open();
  auto transaction = sql::Transaction::begin(*relay).value();
  transaction.query("SELECT FROM outbox_events WHERE event_id = $1 FOR UPDATE", {locked}).value();
  const auto last = count_events(db_.connection(), Action::discard, {}).value().last;
  EXPECT_EQ(change_events(db_.connection(), Action::discard, {}, last).value(), 1);
  EXPECT_EQ(db_.state(free), "DISCARDED 0 -");
  EXPECT_EQ(db_.state(locked), "FAILED 0 held");
}

TEST_F(OutboxOnPostgres, what_a_relay_has_not_settled_is_found_behind_its_checkpoint) {
  db_.read_lanes(0s);
  const auto settled = db_.add("a", {.status = "SENT"});
  db_.run(
      "UPDATE outbox_lane SET seen = pg_current_snapshot(),"
      " system_identifier = (SELECT system_identifier FROM pg_control_system())");
  db_.add("b");
  EXPECT_EQ(read_health(db_.connection()).value().waiting.count, 1);
  db_.run("UPDATE outbox_events SET status = 'PENDING' WHERE event_id = '" + settled + "'");
  // Of a dump from another cluster the numbers of transactions say nothing, nor of one that had the
  // same identifier and went its own way.
  db_.run("UPDATE outbox_lane SET seen = '999999999:999999999:'");
  EXPECT_EQ(read_health(db_.connection()).value().waiting.count, 2);
  db_.run("UPDATE outbox_lane SET seen = pg_current_snapshot(), system_identifier = 1");
  EXPECT_EQ(read_health(db_.connection()).value().waiting.count, 2);
}

TEST_F(OutboxOnPostgres, names_are_not_looked_up_in_schemas_of_others) {
  db_.add("a", {.status = "FAILED", .next = "held", .error = "x"});
  db_.connection()
      .script(
          "CREATE SCHEMA evil; CREATE FUNCTION evil.strpos(text, text) RETURNS integer"
          " LANGUAGE plpgsql AS $$ BEGIN RAISE 'called'; END $$")
      .value();
  db_.run("SET search_path = evil, pg_catalog, public");
  const EventFilter filter{.error = "X"};
  EXPECT_EQ(list_events(db_.connection(), outbox_events(), filter).value().size(), 1U);
  EXPECT_EQ(count_events(db_.connection(), Action::retry, filter).value().count, 1);
  EXPECT_EQ(change_events(db_.connection(), Action::retry, filter, 100).value(), 1);
  EXPECT_EQ(db_.ask("SHOW search_path"), "evil, pg_catalog, public");
}

}  // namespace
}  // namespace baton::outbox
