// postgres-advisory: with many callers: their sessions are opened at the same time, are asked at
// the same time, and are there for the next ones. Each of these alone made 64 callers as slow as
// one.

#include <gtest/gtest.h>

#include <future>

#include "integration/postgres/postgres_around.h"
#include "integration/postgres_advisory/postgres_advisory_database.h"
#include "support/wait.h"

namespace baton::test {
namespace {

constexpr std::uint64_t kCallers = 8;

std::string name_of(std::uint64_t caller) { return "DEFAULT:callers:" + std::to_string(caller); }

class PostgresAdvisorySessions : public ::testing::Test {
 protected:
  AdvisoryDatabase database;
  Session look{database.url()};

  static std::vector<Request> requests(Verb verb) {
    std::vector<Request> all;
    for (std::uint64_t i = 1; i <= kCallers; ++i) {
      all.push_back(verb == Verb::acquire ? acquire(i, name_of(i)) : request(verb, i, name_of(i)));
    }
    return all;
  }
  static void expect_all(Outcome wanted, const std::vector<Reply>& replies) {
    for (const Reply& reply : replies) EXPECT_EQ(reply.outcome, wanted) << reply.message;
  }
  std::string sessions_with_locks() {
    return look.sql(
        "SELECT string_agg(DISTINCT pid::text, ',' ORDER BY pid::text) FROM pg_locks l "
        "JOIN pg_database d ON d.oid = l.database "
        "WHERE l.locktype = 'advisory' AND d.datname = current_database()");
  }
  int other_sessions() {
    return std::stoi(
        look.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                 "AND pid <> pg_backend_pid()"));
  }
  // All callers acquire while somebody has a lock on a table; gives whether all of them were seen
  // to wait for it at once.
  bool all_wait_at_once(LockStore& store, const std::string& lock_table,
                        Verb verb = Verb::acquire) {
    Session blocker(database.url());
    blocker.sql("BEGIN; LOCK TABLE " + lock_table);
    auto asked =
        std::async(std::launch::async, [&] { return store.apply(requests(verb), soon()).value(); });
    const bool seen = poll_until([&] {
      return look.sql(
                 "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                 "AND datname = current_database()") == std::to_string(kCallers);
    });
    blocker.sql("ROLLBACK");
    expect_all(verb == Verb::acquire ? Outcome::granted : Outcome::done, asked.get());
    return seen;
  }
};

TEST_F(PostgresAdvisorySessions, for_a_batch_are_opened_at_the_same_time) {
  const auto store = database.store("?baton_apply_timeout=60s");
  // Opening a session prepares a statement that reads this table.
  EXPECT_TRUE(all_wait_at_once(*store, "baton_advisory.note IN ACCESS EXCLUSIVE MODE"));
}

TEST_F(PostgresAdvisorySessions, are_all_asked_before_the_first_answer_is_waited_for) {
  const auto store = database.store("?baton_apply_timeout=60s");
  expect_all(Outcome::granted, store->apply(requests(Verb::acquire), soon()).value());
  expect_all(Outcome::done, store->apply(requests(Verb::release), soon()).value());
  // Who takes a lock writes this table; to look at it is allowed.
  EXPECT_TRUE(all_wait_at_once(*store, "baton_advisory.term IN SHARE MODE"));
}

TEST_F(PostgresAdvisorySessions, are_all_told_to_let_go_before_the_first_answer_is_waited_for) {
  const auto store = database.store("?baton_apply_timeout=60s");
  expect_all(Outcome::granted, store->apply(requests(Verb::acquire), soon()).value());
  EXPECT_TRUE(all_wait_at_once(*store, "baton_advisory.term IN SHARE MODE", Verb::release));
}

TEST_F(PostgresAdvisorySessions, take_a_free_name_without_a_look_at_it_first) {
  const auto store = database.store();
  Session blocker(database.url());
  blocker.sql("BEGIN; LOCK TABLE baton_advisory.waiter");  // a look reads it
  expect_all(Outcome::granted, store->apply(requests(Verb::acquire), soon()).value());
}

TEST_F(PostgresAdvisorySessions, say_who_has_a_name_that_was_not_free) {
  const auto store = database.store();
  const auto other = database.store();
  expect_all(Outcome::granted, other->apply(requests(Verb::acquire), soon()).value());
  for (int round = 0; round < 2; ++round) {
    std::vector<Request> again = requests(Verb::acquire);
    for (Request& request : again) request.grant.low += 100;
    const auto replies = store->apply(again, soon()).value();
    expect_all(Outcome::busy, replies);
    for (const Reply& reply : replies) EXPECT_EQ(reply.holders.size(), 1U);
  }
  expect_all(Outcome::done, other->apply(requests(Verb::release), soon()).value());
  expect_all(Outcome::granted, store->apply(requests(Verb::acquire), soon()).value());
}

TEST_F(PostgresAdvisorySessions, are_kept_for_as_many_as_were_used_lately) {
  const auto store = database.store();
  expect_all(Outcome::granted, store->apply(requests(Verb::acquire), soon()).value());
  const std::string first = sessions_with_locks();
  EXPECT_EQ(std::count(first.begin(), first.end(), ','), int{kCallers} - 1) << first;
  expect_all(Outcome::done, store->apply(requests(Verb::release), soon()).value());
  std::vector<Request> again = requests(Verb::acquire);
  for (Request& request : again) request.grant.low += 100;
  expect_all(Outcome::granted, store->apply(again, soon()).value());
  EXPECT_EQ(sessions_with_locks(), first);
}

TEST_F(PostgresAdvisorySessions, are_not_kept_beyond_what_the_url_allows) {
  const auto store = database.store("?baton_max_idle_sessions=2");
  const int before = other_sessions();
  expect_all(Outcome::granted, store->apply(requests(Verb::acquire), soon()).value());
  EXPECT_EQ(other_sessions(), before + int{kCallers});
  expect_all(Outcome::done, store->apply(requests(Verb::release), soon()).value());
  EXPECT_TRUE(poll_until([&] { return other_sessions() == before + 2; }));
}

}  // namespace
}  // namespace baton::test
