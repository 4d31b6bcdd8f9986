// What it takes to open a postgres-advisory: store, and what a user is told when it does not open.

#include <gtest/gtest.h>

#include "integration/postgres/postgres_around.h"
#include "integration/postgres_advisory/postgres_advisory_database.h"

namespace baton::test {
namespace {

Error error_of_opening(const std::string& url, Deadline deadline = soon()) {
  auto store = open_postgres_advisory_store(url, deadline);
  EXPECT_FALSE(store) << "it opened";
  return store ? Error{} : store.error();
}

bool mentions(const Error& error, const std::string& text) {
  return error.message.find(text) != std::string::npos;
}

TEST(PostgresAdvisoryOpen, a_database_without_the_schema_says_what_to_run) {
  const Database database;
  const Error error = error_of_opening(advisory(database.url()));
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_TRUE(mentions(error, "baton store migrate --store postgres-advisory://")) << error.message;
  const auto admin = open_postgres_advisory_admin(advisory(database.url()), soon()).value();
  EXPECT_EQ(admin->status(soon()).value().schema_version, 0);
  EXPECT_EQ(admin->migrate(soon()).value(), std::pair(0, 1));
  EXPECT_EQ(admin->migrate(soon()).value(), std::pair(1, 1));
  const auto status = admin->status(soon()).value();
  EXPECT_EQ(status.kind, "postgres-advisory");
  EXPECT_EQ(status.schema_version, status.schema_expected);
}

TEST(PostgresAdvisoryOpen, both_stores_live_in_one_database) {
  const AdvisoryDatabase database;
  database.migrate();
  const auto plain = open_postgres_store(database.url(), soon()).value();
  const auto store = database.store();
  EXPECT_EQ(ask(*plain, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(ask(*store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted) << "they do not mix";
}

TEST(PostgresAdvisoryOpen, a_transaction_pooling_proxy_is_refused_and_a_session_pool_is_not) {
  const AdvisoryDatabase database;
  {
    const Bouncer bouncer(database, "transaction");
    const Error error = error_of_opening(advisory(bouncer.url()));
    EXPECT_EQ(error.code, Code::bad_store);
    EXPECT_TRUE(mentions(error, "transaction-pooling proxy")) << error.message;
  }
  const Bouncer bouncer(database, "session");
  const auto store = open_postgres_advisory_store(advisory(bouncer.url()), soon());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(ask(**store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(ask(*database.store(), acquire(2, "DEFAULT:a")).outcome, Outcome::busy);
}

TEST(PostgresAdvisoryOpen, a_url_that_cannot_be_read_is_refused_without_showing_its_password) {
  for (const std::string rest :
       {"me:hush-hush@localhost/x?key=hush-hush",
        "me:hush-hush@localhost/x?key=", "me:hush-hush@localhost/x?key=9223372036854775808",
        "me:hush-hush@localhost/x?baton_max_waiters=0",
        "me:hush-hush@localhost/x?baton_max_waiters=many", "me:hush-hush@localhost/x?nonsense=1",
        "me:hush/hush-hush@localhost/x"}) {
    const Error error = error_of_opening("postgres-advisory://" + rest);
    EXPECT_EQ(error.code, Code::bad_url) << rest;
    EXPECT_FALSE(mentions(error, "hush-hush")) << error.message;
  }
  const Error away = error_of_opening(
      "postgres-advisory://me:hush-hush@127.0.0.1:" + std::to_string(free_port()) + "/x",
      in(Millis(300)));
  EXPECT_EQ(away.code, Code::unavailable);
  EXPECT_FALSE(mentions(away, "hush-hush")) << away.message;
}

TEST(PostgresAdvisoryOpen, missing_rights_are_named_and_the_documented_ones_are_enough) {
  const AdvisoryDatabase database;
  const Role role(database);
  const std::string url = advisory(database.url_as(role.name()));
  Error error = error_of_opening(url);
  EXPECT_EQ(error.code, Code::unauthorized);
  EXPECT_TRUE(mentions(error, "USAGE on schema baton_advisory")) << error.message;
  Session(database.url())
      .sql("GRANT USAGE ON SCHEMA baton_advisory TO " + role.name() +
           ";GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA baton_advisory TO " +
           role.name());
  error = error_of_opening(url);
  EXPECT_TRUE(mentions(error, "DELETE on baton_advisory.term")) << error.message;
  EXPECT_TRUE(mentions(error, "sequence baton_advisory.counter")) << error.message;
  Session(database.url())
      .sql("REVOKE INSERT, UPDATE ON ALL TABLES IN SCHEMA baton_advisory FROM " + role.name() +
           ";GRANT INSERT, UPDATE, DELETE ON baton_advisory.term, baton_advisory.note,"
           " baton_advisory.server, baton_advisory.waiter TO " +
           role.name() + ";GRANT USAGE ON SEQUENCE baton_advisory.counter TO " + role.name());
  const auto store = open_postgres_advisory_store(url, soon());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(ask(**store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(ask(**store, acquire(2, "DEFAULT:a", Millis(5000))).outcome, Outcome::queued);
  EXPECT_EQ(ask(**store, request(Verb::renew, 1, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(ask(**store, request(Verb::release, 1, "DEFAULT:a")).outcome, Outcome::done);
  EXPECT_EQ(store.value()->find({.idle = true}, soon()).value().items.size(), 1U);
  Session session(database.url_as(role.name()));
  EXPECT_THROW(session.sql("UPDATE baton_advisory.meta SET version = 7"), std::runtime_error);
  EXPECT_THROW(session.sql("DROP FUNCTION baton_advisory.sweep"), std::runtime_error);
}

TEST(PostgresAdvisoryOpen, raised_tokens_stay_above_the_floor) {
  const AdvisoryDatabase database;
  const auto store = database.store();
  const auto admin = open_postgres_advisory_admin(advisory(database.url()), soon()).value();
  const Token before = ask(*store, acquire(1, "DEFAULT:a")).tokens.at(0);
  ASSERT_TRUE(admin->raise_tokens(before + 1000, soon()));
  EXPECT_GT(ask(*store, acquire(2, "DEFAULT:b")).tokens.at(0), before + 1000);
}

}  // namespace
}  // namespace baton::test
