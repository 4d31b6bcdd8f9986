// What goes wrong around the store, or is left behind by others, and must not reach who asks.

#include <gtest/gtest.h>

#include "integration/postgres/postgres_database.h"
#include "store/postgres/sql_error.h"

namespace baton::test {
namespace {

using std::chrono::seconds;

class PostgresMishap : public ::testing::Test {
 protected:
  PostgresMishap() { database.migrate(); }
  Database database;
};

const std::string kKey = "DEFAULT:job:1";

// A sequence does not roll back, and a client of the version that was not to be may be about.
TEST_F(PostgresMishap,
       a_schema_change_that_was_rolled_back_lets_no_client_in_that_the_note_denies) {
  const auto store = database.store();
  Request schema = acquire(1, std::string(core::kSchemaKey));
  schema.change = {.ordinal = 7, .text = "{}"};
  ASSERT_EQ(ask(*store, schema).outcome, Outcome::granted);
  ASSERT_EQ(ask(*store, request(Verb::release, 1, schema.targets[0].key)).outcome, Outcome::done);
  Session session(database.url());
  const std::string version = "SELECT pg_sequence_last_value('baton.schema_version')";
  EXPECT_EQ(session.sql(version), "7") << "the fast path is open again";
  for (const std::int64_t wanted : {0, 8}) {
    session.sql("BEGIN");
    session.sql("SELECT baton.write_note('BATON:schema', " + std::to_string(wanted) + ", '{}')");
    session.sql("ROLLBACK");
    Request denied = acquire(2, kKey);
    denied.schema_version = wanted;
    EXPECT_EQ(ask(*store, denied).outcome, Outcome::denied) << wanted;
    Request right = acquire(3, kKey);
    right.schema_version = 7;
    EXPECT_EQ(ask(*store, right).outcome, Outcome::granted);
    EXPECT_EQ(ask(*store, request(Verb::release, 3, kKey)).outcome, Outcome::done);
  }
  EXPECT_NE(session.sql(version), "7");
  EXPECT_EQ(session.sql("SELECT baton.sweep('', 100, NULL)"), "");
  EXPECT_EQ(session.sql(version), "7") << "the next sweep opens it again";
}

TEST_F(PostgresMishap, a_name_is_handed_over_even_if_nobody_can_be_woken) {
  const auto store = database.store();
  Session session(database.url());
  session.sql(
      "CREATE OR REPLACE FUNCTION pg_catalog.pg_notification_queue_usage() RETURNS float8 "
      "LANGUAGE sql AS 'SELECT 0.95::float8'");
  ask(*store, acquire(1, kKey));
  ask(*store, acquire(2, kKey, Millis(20'000)));
  session.sql("LISTEN " + store::postgres::notify_channel("process-2"));
  EXPECT_EQ(ask(*store, request(Verb::release, 1, kKey)).outcome, Outcome::done);
  session.sql("SELECT 1");  // reads what has come
  const std::unique_ptr<PGnotify, decltype(&PQfreemem)> heard(PQnotifies(session.get()),
                                                              &PQfreemem);
  EXPECT_EQ(heard, nullptr) << "in a full queue this would have failed the release";
  EXPECT_EQ(ask(*store, request(Verb::claim, 2, kKey)).outcome, Outcome::granted);
}

TEST(PostgresMishaps, a_full_notification_queue_is_no_fault_of_the_request) {
  EXPECT_FALSE(store::postgres::is_bad_data("54000"));
  const Error error = store::postgres::error_for("54000", "too many notifications", {});
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_TRUE(error.retryable);
  EXPECT_TRUE(store::postgres::is_bad_data("54001"));
}

TEST_F(PostgresMishap, a_search_may_ask_for_all_there_is) {
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  Query all;
  all.limit = ~std::size_t{0};
  const auto page = store->find(all, in(seconds(5)));
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->items.size(), 1U);
}

TEST_F(PostgresMishap, a_name_that_was_crowded_takes_the_short_way_again) {
  std::atomic<std::int64_t> now{1'000'000'000'000};
  const auto store =
      store::open_postgres_store(
          {.url = database.url(), .now = [&] { return core::StoreTime(now.load()); }}, soon())
          .value();
  for (const std::uint64_t number : {1, 2}) {
    Request shared = acquire(number, kKey);
    shared.targets[0].mode = Mode::S;
    ASSERT_EQ(ask(*store, shared).outcome, Outcome::granted);
  }
  Session session(database.url());
  ASSERT_EQ(session.sql("SELECT crowded FROM baton.lock"), "t");
  now += core::StoreTime(std::chrono::minutes(1)).count();
  EXPECT_EQ(ask(*store, acquire(3, kKey)).outcome, Outcome::granted);
  EXPECT_EQ(session.sql("SELECT crowded FROM baton.lock"), "f");
  EXPECT_EQ(session.sql("SELECT count(*) FROM baton.holder"), "0");
}

// The server's answer makes no sense, in the middle of requests that are sent one by one.
TEST_F(PostgresMishap, a_session_is_as_patient_as_before_whatever_happened_on_it) {
  const auto store = database.store("?baton_apply_timeout=10s");
  Session session(database.url());
  const auto answers = [&](const std::string& body) {
    session.sql(
        "CREATE OR REPLACE FUNCTION baton.apply_all(rs baton.request[], at bigint) RETURNS SETOF "
        "baton.reply LANGUAGE plpgsql AS $$ DECLARE reply baton.reply; BEGIN " +
        body + " RETURN NEXT reply; END $$");
  };
  answers(
      "IF cardinality(rs) > 1 THEN RAISE lock_not_available; END IF;"
      "reply.ord := 99; reply.outcome := 7;");
  std::vector<Request> batch;
  for (std::uint64_t i = 1; i <= 2; ++i) batch.push_back(request(Verb::cancel, i, kKey));
  const auto nonsense = store->apply(batch, soon());
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().code, Code::bad_store) << nonsense.error().message;
  answers("reply.ord := 1; reply.outcome := 6; reply.message := current_setting('lock_timeout');");
  EXPECT_EQ(ask(*store, batch[0]).message, "2s");
}

}  // namespace
}  // namespace baton::test
