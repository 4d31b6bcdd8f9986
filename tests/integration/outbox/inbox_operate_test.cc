// What operators do to the messages in trouble of consumers, the same on SQLite and PostgreSQL.

#include "inbox/operate.h"

#include "baton/inbox.h"
#include "inbox/inbox_table.h"
#include "integration/outbox/outbox_database.h"

namespace baton::inbox {
namespace {

using namespace std::chrono_literals;
using outbox::EventFilter;

class InboxOperate : public ::testing::TestWithParam<sql::Kind> {
 protected:
  InboxOperate() {
    db_.on_postgres() ? install_inbox(db_.connection().postgres()).value()
                      : install_inbox(db_.connection().sqlite()).value();
  }

  // A message that is in trouble, and what the ledger says of it. Gives its id.
  std::string add(const std::string& consumer, const std::string& status,
                  const std::string& error = "timeout", std::chrono::seconds age = 0s) {
    const auto id = make_event_id();
    const std::string outcome = status == "DEAD" ? "dead" : "retrying";
    db_.run(
        "INSERT INTO inbox_events (consumer, queue, status, retry_count, claim, last_error,"
        " event_id, type, aggregate_type, aggregate_id, exchange, routing_key, payload, headers,"
        " version, message_id, content_type, created_at, next_retry_at) VALUES ('" +
        consumer + "', 'q', '" + status + "', 5, 7, '" + error + "', '" + id +
        "', 'DocumentUploaded', '', 'doc-1', 'documents', 'k', '{\"a\":1}', '{}', 1, 'm',"
        " 'application/json', " +
        db_.past(age) + ", " + (status == "RETRY" ? db_.past(age) : "NULL") + ")");
    db_.run("INSERT INTO processed_events (consumer, event_id, outcome, processed_at) VALUES ('" +
            consumer + "', '" + id + "', '" + outcome + "', " + db_.past(age) + ")");
    return id;
  }
  // "RETRY 0 8 due, retrying": attempts, claim, whether it is due, and the ledger.
  std::string state(const std::string& id) {
    return db_.ask(
        "SELECT status || ' ' || retry_count || ' ' || claim ||"
        " CASE WHEN next_retry_at IS NULL THEN '' WHEN next_retry_at <= " +
        db_.past(0s) +
        " THEN ' due' ELSE ' later' END || ', ' || outcome FROM inbox_events e"
        " JOIN processed_events p ON p.event_id = e.event_id AND"
        " p.consumer = e.consumer WHERE e.event_id = '" +
        id + "'");
  }
  std::int64_t change(Action action, const EventFilter& filter, bool force = false) {
    const auto count = count_events(db_.connection(), action, filter, force).value();
    const auto changed = change_events(db_.connection(), action, filter, count.last, force).value();
    EXPECT_EQ(changed, count.count) << "the dry run says what is done";
    return changed;
  }

  test::OutboxDatabase db_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(On, InboxOperate,
                         ::testing::Values(sql::Kind::sqlite, sql::Kind::postgres),
                         [](const auto& tested) {
                           return std::string(tested.param == sql::Kind::sqlite ? "sqlite"
                                                                                : "postgres");
                         });

TEST_P(InboxOperate, a_redriven_dead_letter_is_due_with_no_attempt_used_and_a_new_claim) {
  const auto dead = add("billing", "DEAD");
  const auto other = add("audit", "DEAD");
  const auto retried = add("billing", "RETRY");
  EXPECT_EQ(change(Action::redrive, {.consumer = "billing"}), 1);
  EXPECT_EQ(state(dead), "RETRY 0 8 due, retrying");
  EXPECT_EQ(state(other), "DEAD 5 7, dead");
  EXPECT_EQ(state(retried), "RETRY 5 7 due, retrying");
}

TEST_P(InboxOperate, a_discarded_dead_letter_is_decided_for_good) {
  const auto dead = add("billing", "DEAD");
  const auto held = add("billing", "HELD");
  EXPECT_EQ(change(Action::discard, {.ids = {dead, held}}), 1);
  EXPECT_EQ(state(dead), "DISCARDED 5 8, discarded");
  EXPECT_EQ(state(held), "HELD 5 7, retrying");
  EXPECT_EQ(change(Action::redrive, {}), 0) << "a discarded event stays so";
}

TEST_P(InboxOperate, the_ledger_counts_a_discard_from_when_it_was_decided) {
  const auto dead = add("billing", "DEAD", "x", 30 * 24h);
  change(Action::discard, {});
  EXPECT_EQ(db_.ask("SELECT count(*) FROM processed_events WHERE processed_at > " + db_.past(1h)),
            "1");
}

TEST_P(InboxOperate, what_is_older_than_the_deduplication_window_is_redriven_by_force_alone) {
  const auto old = add("billing", "DEAD", "x", 15 * 24h);
  const auto young = add("billing", "DEAD", "x", 13 * 24h);
  EXPECT_EQ(change(Action::redrive, {}), 1);
  EXPECT_EQ(state(old), "DEAD 5 7, dead");
  EXPECT_EQ(state(young), "RETRY 0 8 due, retrying");
  EXPECT_EQ(change(Action::redrive, {}, true), 1);
  EXPECT_EQ(state(old), "RETRY 0 8 due, retrying");
}

TEST_P(InboxOperate, dead_letters_are_counted_by_consumer_and_error) {
  for (int i = 0; i < 3; ++i) add("billing", "DEAD", "timeout");
  add("billing", "DEAD", "no such customer");
  add("audit", "DEAD", "timeout", 2h);
  add("audit", "RETRY", "timeout");
  const auto count = count_events(db_.connection(), Action::discard, {}).value();
  EXPECT_EQ(count.count, 5);
  ASSERT_EQ(count.groups.size(), 3U);
  EXPECT_EQ(count.groups[0].consumer, "billing");
  EXPECT_EQ(count.groups[0].error, "timeout");
  EXPECT_EQ(count.groups[0].count, 3);
  EXPECT_EQ(count_events(db_.connection(), Action::discard, {.error = "TIME", .consumer = "audit"})
                .value()
                .count,
            1);
}

TEST_P(InboxOperate, a_redrive_is_done_in_batches_at_the_pace_that_is_asked_for) {
  for (int i = 0; i < 5; ++i) add("billing", "DEAD");
  const auto last = count_events(db_.connection(), Action::redrive, {}).value().last;
  std::vector<std::size_t> batches;
  const outbox::Pace pace{.batch = 2,
                          .after_batch = [&](std::size_t changed) { batches.push_back(changed); }};
  EXPECT_EQ(change_events(db_.connection(), Action::redrive, {}, last, false, pace).value(), 5);
  EXPECT_EQ(batches, (std::vector<std::size_t>{2, 2}));
}

TEST_P(InboxOperate, a_message_is_shown_whole_also_if_it_is_no_event) {
  const auto id = add("billing", "DEAD", "not JSON");
  db_.run("UPDATE inbox_events SET payload = '', raw = " +
          std::string(db_.on_postgres() ? "'\\xff00'" : "x'ff00'"));
  const auto rows =
      outbox::list_events(db_.connection(), inbox_events(), {.ids = {id}, .consumer = "billing"},
                          {.with_payload = true})
          .value();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].consumer, "billing");
  EXPECT_EQ(rows[0].queue, "q");
  EXPECT_EQ(rows[0].message_id, "m");
  EXPECT_EQ(rows[0].content_type, "application/json");
  EXPECT_EQ(rows[0].raw, std::string("\xff\0", 2));
}

TEST_P(InboxOperate, status_tells_dead_letters_and_retries_that_nobody_takes) {
  const auto verdict = [&] { return judge(read_health(db_.connection(), "").value()); };
  EXPECT_EQ(verdict().why, "nothing is in trouble");
  EXPECT_FALSE(verdict().stuck);
  add("billing", "RETRY");
  add("billing", "HELD");
  EXPECT_EQ(verdict().why, "2 events are being retried");
  EXPECT_FALSE(verdict().stuck);
  add("audit", "RETRY", "x", 2min);
  add("billing", "DEAD");
  EXPECT_EQ(verdict().why,
            "nobody takes the due retries of audit: does it run?; 1 dead letter; 3 events are"
            " being retried");
  EXPECT_TRUE(verdict().stuck);
  EXPECT_EQ(read_health(db_.connection(), "audit").value().size(), 1U);
}

TEST_P(InboxOperate, a_database_without_an_inbox_is_told_how_to_get_one) {
  db_.run("DROP TABLE inbox_version");
  const auto missing = count_events(db_.connection(), Action::redrive, {});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, Code::bad_store);
  EXPECT_NE(missing.error().message.find("baton inbox install --database URL"), std::string::npos);
}

TEST(InboxOnPostgres, a_dead_letter_that_somebody_else_holds_is_passed_over) {
  const test::OutboxDatabase db(sql::Kind::postgres);
  install_inbox(db.connection().postgres()).value();
  db.run(
      "INSERT INTO inbox_events (consumer, queue, status, event_id, type, aggregate_type,"
      " aggregate_id, exchange, routing_key, payload, headers, version, message_id, content_type)"
      " SELECT 'c', 'q', 'DEAD', gen_random_uuid(), 'T', '', 'a', '', 'k', '{}', '{}', 1, 'm', 't'"
      " FROM generate_series(1, 2)");
  const auto consumer = db.open();
  auto transaction = sql::Transaction::begin(*consumer).value();
  transaction.query("SELECT FROM inbox_events WHERE arrival = 1 FOR UPDATE").value();
  EXPECT_EQ(change_events(db.connection(), Action::redrive, {}, 2).value(), 1);
  EXPECT_EQ(db.ask("SELECT string_agg(status, ' ' ORDER BY arrival) FROM inbox_events"),
            "DEAD RETRY");
}

}  // namespace
}  // namespace baton::inbox
