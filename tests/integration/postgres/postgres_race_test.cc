// Two sessions at the same name, one step at a time: each test brings both to the point where their
// order decides, and only then lets them go on.

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "integration/postgres/postgres_database.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using std::chrono::seconds;
using store::postgres::StatementId;

const std::string kKey = "DEFAULT:job:1";
constexpr core::StoreTime kStart{1'000'000'000'000};

class PostgresRace : public ::testing::Test {
 protected:
  PostgresRace() { database.migrate(); }

  // A process whose statements all say that it is `now`; it has the patience to be held up.
  [[nodiscard]] std::unique_ptr<LockStore> store_at(core::StoreTime now) const {
    return store::open_postgres_store(
               {.url = database.url() + "?baton_apply_timeout=1m", .now = [=] { return now; }},
               soon())
        .value();
  }

  // Until so many sessions of this database wait for a lock.
  testing::AssertionResult are_held_up(int sessions) {
    const std::string count =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
        "wait_event_type = 'Lock'";
    return poll_until([&] { return watcher.sql(count) == std::to_string(sessions); })
               ? testing::AssertionSuccess()
               : testing::AssertionFailure() << watcher.sql(count) << " wait for a lock";
  }

  static std::future<Reply> ask_aside(LockStore& store, const Request& one) {
    return std::async(std::launch::async, [&store, one] { return ask(store, one); });
  }

  Database database;
  Session watcher{database.url()};
};

Request shared(Verb verb, std::uint64_t number) {
  Request made = request(verb, number, kKey, Mode::S);
  made.queue_ttl = verb == Verb::acquire ? Millis(60'000) : Millis(0);
  return made;
}

TEST_F(PostgresRace, a_claim_that_was_held_up_does_not_bring_back_whom_a_conversion_found_expired) {
  const auto start = store_at(kStart);
  ask(*start, acquire(1, kKey));
  for (const std::uint64_t number : {2, 3}) {
    ASSERT_EQ(ask(*start, shared(Verb::acquire, number)).outcome, Outcome::queued);
  }
  ASSERT_EQ(ask(*start, request(Verb::release, 1, kKey)).outcome, Outcome::done);
  ASSERT_EQ(ask(*start, shared(Verb::claim, 3)).outcome, Outcome::granted);

  // 2 has been promoted and comes for it at the last moment; 3 converts when that is over.
  const core::StoreTime end = kStart + shared(Verb::acquire, 2).claim_within;
  const auto early = store_at(end - Millis(1));
  const auto late = store_at(end + Millis(1));
  Session blocker(database.url());
  blocker.sql("BEGIN");
  blocker.sql("SELECT 1 FROM baton.lock WHERE key = '" + kKey + "' FOR UPDATE");
  auto converted = ask_aside(*late, request(Verb::convert, 3, kKey, Mode::X));
  ASSERT_TRUE(are_held_up(1));
  auto claimed = ask_aside(*early, shared(Verb::claim, 2));
  ASSERT_TRUE(are_held_up(2));
  blocker.sql("COMMIT");
  EXPECT_EQ(converted.get().outcome, Outcome::granted);
  EXPECT_EQ(claimed.get().outcome, Outcome::lost);
}

TEST_F(PostgresRace, an_older_renewal_does_not_bring_back_whom_a_conversion_found_expired) {
  const auto start = store_at(kStart);
  Request longer = shared(Verb::acquire, 3);
  longer.ttl = Millis(60'000);
  ASSERT_EQ(ask(*start, shared(Verb::acquire, 2)).outcome, Outcome::granted);
  ASSERT_EQ(ask(*start, longer).outcome, Outcome::granted);
  const core::StoreTime end = kStart + shared(Verb::acquire, 2).ttl;
  const auto late = store_at(end + Millis(1));
  ASSERT_EQ(ask(*late, request(Verb::convert, 3, kKey, Mode::X)).outcome, Outcome::granted);
  EXPECT_EQ(run(watcher, StatementId::renew, shared(Verb::renew, 2), end - Millis(1)), 0);
  EXPECT_EQ(ask(*store_at(end - Millis(1)), shared(Verb::renew, 2)).outcome, Outcome::lost);
}

TEST_F(PostgresRace, a_claim_that_only_looks_does_not_miss_the_promotion_it_came_for) {
  const auto store = store_at(kStart);
  ask(*store, acquire(1, kKey));
  ask(*store, acquire(2, kKey, Millis(60'000)));
  ASSERT_EQ(ask(*store, request(Verb::claim, 2, kKey)).outcome, Outcome::queued)
      << "also, the session knows the way by now and is not held up sooner";
  Session releaser(database.url());
  releaser.sql("BEGIN");
  releaser.sql("LOCK TABLE baton.waiter IN ACCESS EXCLUSIVE MODE");
  // It has seen who holds the name, and goes on to look for itself among those who wait.
  auto claimed = ask_aside(*store, request(Verb::claim, 2, kKey));
  ASSERT_TRUE(are_held_up(1));
  EXPECT_EQ(run(releaser, StatementId::apply_one, request(Verb::release, 1, kKey), kStart), 1);
  releaser.sql("COMMIT");
  EXPECT_EQ(claimed.get().outcome, Outcome::granted);
}

TEST_F(PostgresRace, a_renewal_with_a_note_that_is_stuck_holds_no_other_renewal_up) {
  const auto store = database.store("?baton_apply_timeout=1m");
  ask(*store, acquire(1, kKey));
  ask(*store, acquire(2, "DEFAULT:job:2"));
  Session blocker(database.url());
  blocker.sql("BEGIN");
  blocker.sql("SELECT 1 FROM baton.lock WHERE key = '" + kKey + "' FOR UPDATE");
  Request noted = request(Verb::renew, 1, kKey);
  noted.change.text = "half way";
  auto stuck = ask_aside(*store, noted);
  ASSERT_TRUE(are_held_up(1));
  EXPECT_EQ(ask(*store, request(Verb::renew, 2, "DEFAULT:job:2")).outcome, Outcome::granted);
  EXPECT_EQ(stuck.wait_for(seconds(0)), std::future_status::timeout) << "this showed nothing";
  blocker.sql("COMMIT");
  EXPECT_EQ(stuck.get().outcome, Outcome::granted);
}

// The store expects the row to be free, and another session takes it first: the statement must
// judge the row as it is after the wait.
TEST_F(PostgresRace, a_name_taken_again_is_busy_if_another_took_it_while_its_row_was_waited_for) {
  const auto store = store_at(kStart);
  Request again = acquire(1, kKey);
  ASSERT_EQ(ask(*store, again).outcome, Outcome::granted);
  ASSERT_EQ(ask(*store, request(Verb::release, 1, kKey)).outcome, Outcome::done);

  Session other(database.url());
  other.sql("BEGIN");
  other.sql("UPDATE baton.lock SET grant_id = '" + to_string(grant(7)) +
            "', token = nextval('baton.counter'), since = " + std::to_string(kStart.count()) +
            ", expires = " + std::to_string((kStart + Millis(9'000)).count()) + " WHERE key = '" +
            kKey + "'");
  again.grant = grant(2);
  auto asked = ask_aside(*store, again);
  ASSERT_TRUE(are_held_up(1));
  other.sql("COMMIT");
  const Reply reply = asked.get();
  EXPECT_EQ(reply.outcome, Outcome::busy);
  ASSERT_EQ(reply.holders.size(), 1U);
  EXPECT_EQ(reply.holders[0].grant, grant(7));
}

// A fast path locks rows in the order of the keys, as apply does: while it waits for one row it has
// locked none with a later key, for which another session could wait in turn.
TEST_F(PostgresRace, an_acquire_of_many_names_that_waits_for_one_has_no_later_one) {
  const auto store = store_at(kStart);
  const std::string later = "DEFAULT:job:2";
  ask(*store, acquire(1, later));
  ask(*store, request(Verb::release, 1, later));
  Session other(database.url());
  other.sql("BEGIN");
  other.sql("SELECT baton.lock_names(ARRAY['" + kKey + "'])");
  const auto fresh = store_at(kStart);  // it does not know which names have a row
  auto granted = std::async(std::launch::async, [&] {
    return fresh->apply(std::vector{acquire(2, kKey), acquire(3, later)}, soon()).value();
  });
  ASSERT_TRUE(are_held_up(1));
  EXPECT_NO_THROW(
      other.sql("SELECT 1 FROM baton.lock WHERE key = '" + later + "' FOR UPDATE NOWAIT"));
  other.sql("COMMIT");
  for (const Reply& reply : granted.get()) EXPECT_EQ(reply.outcome, Outcome::granted);
}

TEST_F(PostgresRace, a_release_with_a_note_that_waits_has_none_of_the_names_that_were_acquired) {
  const auto store = store_at(kStart);
  const std::string later = "DEFAULT:job:2";
  ask(*store, acquire(1, kKey));
  ask(*store, acquire(2, later));
  ask(*store, request(Verb::release, 2, later));
  Session other(database.url());
  other.sql("BEGIN");
  other.sql("SELECT baton.lock_names(ARRAY['" + kKey + "'])");
  std::vector<Request> batch{acquire(3, later), request(Verb::release, 1, kKey)};
  for (Request& one : batch) one.change.text = "noted";
  auto done = std::async(std::launch::async, [&] { return store->apply(batch, soon()).value(); });
  ASSERT_TRUE(are_held_up(1));
  EXPECT_NO_THROW(
      other.sql("SELECT 1 FROM baton.lock WHERE key = '" + later + "' FOR UPDATE NOWAIT"));
  other.sql("COMMIT");
  const auto replies = done.get();
  EXPECT_EQ(replies[0].outcome, Outcome::granted);
  EXPECT_EQ(replies[1].outcome, Outcome::done);
}

// No request takes effect later than the apply limit after it was made, so one that could only be
// sent when too much of that is over must not be sent. Here it waits for a connection: all are busy
// with searches that find nothing and go on until they are ended.
class PostgresLateRequest : public PostgresRace {
 protected:
  PostgresLateRequest() {
    watcher.sql("SET synchronous_commit = off");  // nothing here is to wait for a disk
    watcher.sql(
        "CREATE OR REPLACE FUNCTION baton.find(prefix text, after text, idle boolean, rows "
        "integer, most bigint, at bigint) RETURNS TABLE (key text, note_ordinal bigint, "
        "note_text text, holders text, waiters text, waiting bigint, now_us bigint) "
        "LANGUAGE sql AS $$"
        "SELECT 'DEFAULT:other', 0::bigint, '', NULL::text, NULL::text, 0::bigint, 0::bigint "
        "FROM pg_sleep(0.1), generate_series(1, rows) $$");
    endless.owner = "nobody";
    for (int i = 0; i < 2; ++i) {
      searches.push_back(
          std::async(std::launch::async, [&] { return store->find(endless, soon()); }));
    }
    EXPECT_TRUE(poll_until([&] {
      return watcher.sql(
                 "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                 "wait_event = 'PgSleep'") == "2";
    }));
    late = std::async(std::launch::async, [&] {
      now.set_value(BootClock::now());
      return ask(*store, acquire(2, kKey), soon());
    });
    begun = now.get_future().get();
  }

  void sleep_until_after(Millis span) const {
    std::this_thread::sleep_for(begun + span - BootClock::now());
  }
  void end_searches() {
    watcher.sql("DROP FUNCTION baton.find(text, text, boolean, integer, bigint, bigint)");
    for (auto& search : searches) EXPECT_FALSE(search.get());
  }

  // A statement may be sent for two fifths of this, and a connection is waited for to its end.
  const std::unique_ptr<LockStore> store = database.store("?baton_apply_timeout=5s");
  Query endless;
  std::vector<std::future<Result<Page<LockInfo>>>> searches;
  std::promise<Instant> now;
  std::future<Result<Reply>> late;
  Instant begun;
};

TEST_F(PostgresLateRequest, is_not_sent_when_it_waited_too_long_for_a_connection) {
  sleep_until_after(seconds(3));
  end_searches();
  const auto reply = late.get();
  ASSERT_FALSE(reply) << "granted long after the limit";
  EXPECT_EQ(reply.error().code, Code::unavailable);
  EXPECT_NE(reply.error().message.find("asked in time"), std::string::npos)
      << reply.error().message;
  EXPECT_TRUE(reply.error().retryable);
  EXPECT_FALSE(reply.error().in_doubt);
}

TEST_F(PostgresLateRequest, is_not_sent_when_preparing_it_took_too_long) {
  Session blocker(database.url());
  blocker.sql("BEGIN");
  blocker.sql("LOCK TABLE baton.lock IN ACCESS EXCLUSIVE MODE");
  sleep_until_after(Millis(1'500));
  end_searches();
  sleep_until_after(Millis(2'100));  // it has begun in time, and waits for the table now
  blocker.sql("COMMIT");
  const auto reply = late.get();
  ASSERT_FALSE(reply) << "granted long after the limit";
  EXPECT_TRUE(reply.error().retryable);
  EXPECT_FALSE(reply.error().in_doubt);
}

}  // namespace
}  // namespace baton::test
