// What the conformance suite cannot see: what the store writes, what it does when others are in
// its way, when its server goes, and when its caller gives up.

#include <gtest/gtest.h>

#include <condition_variable>
#include <random>
#include <thread>

#include "core/lock_table.h"
#include "integration/postgres/postgres_database.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using std::chrono::seconds;

class PostgresStore : public ::testing::Test {
 protected:
  PostgresStore() { database.migrate(); }
  Database database;
};

const std::string kKey = "DEFAULT:job:1";

using store::postgres::StatementId;

TEST_F(PostgresStore, times_that_no_clock_shows_are_bounded_and_blind_nobody) {
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  ask(*store, acquire(2, "DEFAULT:job:2"));
  Session session(database.url());
  for (const char* change : {"since = -9223372036854775808, expires = 9223372036854775807",
                             "since = 9223372036854775807, ttl = 9223372036854775807"}) {
    session.sql("UPDATE baton.lock SET " + std::string(change) + " WHERE key = '" + kKey + "'");
    const auto page = store->find({}, soon());
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_EQ(page->items.size(), 2U) << change;
    for (const LockInfo& info : page->items) {
      ASSERT_EQ(info.holders.size(), 1U) << info.key;
      EXPECT_GE(info.holders[0].expires_in, Millis(0)) << change;
      EXPECT_TRUE(core::is_stored_span(info.holders[0].ttl)) << change;
    }
    EXPECT_EQ(ask(*store, acquire(3, kKey)).outcome, Outcome::busy) << change;
  }
}

TEST_F(PostgresStore, a_try_on_a_busy_lock_writes_nothing) {
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  ask(*store, acquire(2, kKey, Millis(20'000)));
  Session session(database.url());
  const auto writes = [&](StatementId id, const Request& one, int rows = 1) {
    session.sql("BEGIN");
    EXPECT_EQ(run(session, id, one), rows) << "whether it was answered";
    const auto wrote = session.sql(
        "SELECT pg_current_xact_id_if_assigned() IS NOT NULL OR EXISTS "
        "(SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND "
        "mode = 'RowShareLock' AND relation = 'baton.lock'::regclass)");
    session.sql("ROLLBACK");
    return wrote == "t";
  };
  for (const auto id : {StatementId::busy, StatementId::acquire_new, StatementId::acquire_new_many,
                        StatementId::apply_one}) {
    EXPECT_FALSE(writes(id, acquire(9, kKey))) << static_cast<int>(id);
  }
  EXPECT_FALSE(writes(StatementId::acquire, acquire(9, kKey), 0)) << "it was not free";
  EXPECT_FALSE(writes(StatementId::acquire_many, acquire(9, kKey), 0)) << "it was not free";
  Request set = acquire(9, kKey);
  set.targets.push_back({"DEFAULT:other", Mode::X});
  EXPECT_FALSE(writes(StatementId::apply, set));
  EXPECT_FALSE(writes(StatementId::apply, request(Verb::claim, 9, kKey))) << "it does not wait";
  EXPECT_FALSE(writes(StatementId::apply, request(Verb::claim, 2, kKey)));
  EXPECT_TRUE(writes(StatementId::apply, acquire(9, kKey, Millis(1'000))));
}

TEST_F(PostgresStore, a_try_on_a_busy_lock_is_one_statement) {
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  const auto newcomer = database.store();  // it does not know whether the name has a row
  Session session(database.url());
  const auto sessions =
      "FROM pg_stat_activity WHERE datname = current_database() AND "
      "application_name = 'baton'";
  ASSERT_EQ(session.sql(std::string("SELECT count(*) ") + sessions), "2");
  for (LockStore* one : {newcomer.get(), store.get()}) {
    for (int i = 0; i < 3; ++i) {
      const Reply reply = ask(*one, acquire(9, kKey));
      EXPECT_EQ(reply.outcome, Outcome::busy);
      ASSERT_EQ(reply.holders.size(), 1U);
      EXPECT_EQ(reply.holders[0].grant, grant(1));
      EXPECT_EQ(session.sql(std::string("SELECT count(*) ") + sessions +
                            " AND query LIKE '%baton.apply%'"),
                "0")
          << "it fell back";
    }
  }
}

TEST_F(PostgresStore, every_statement_that_answers_busy_tells_the_same_of_the_holder) {
  const auto store = database.store();
  Request holder = acquire(1, kKey);
  holder.owner = "web-2";
  holder.predicate = "triggering";
  holder.metadata = {{"host", "a \"b\""}};
  ask(*store, holder);
  const auto newcomer = database.store();
  const Reply first = ask(*newcomer, acquire(9, kKey));   // acquire_new
  const Reply second = ask(*newcomer, acquire(9, kKey));  // busy
  Request set = acquire(9, kKey);
  set.targets.push_back({"DEFAULT:other", Mode::X});
  const Reply third = ask(*newcomer, set);  // apply_one
  for (const Reply* reply : {&first, &second, &third}) {
    ASSERT_EQ(reply->outcome, Outcome::busy);
    ASSERT_EQ(reply->holders.size(), 1U);
    const auto& shown = reply->holders[0];
    EXPECT_EQ(shown.grant, grant(1));
    EXPECT_EQ(shown.owner, "web-2");
    EXPECT_EQ(shown.predicate, "triggering");
    EXPECT_EQ(shown.metadata, holder.metadata);
    EXPECT_EQ(shown.token, first.holders[0].token);
    EXPECT_EQ(shown.mode, Mode::X);
    EXPECT_GT(reply->retry_after, Millis(0));
  }
}

TEST_F(PostgresStore, only_what_must_survive_a_crash_waits_for_the_disk) {
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  Session session(database.url());
  const auto waits = [&](StatementId id, const Request& one) {
    session.sql("BEGIN");
    EXPECT_EQ(run(session, id, one), 1);
    const auto setting = session.sql("SHOW synchronous_commit");
    session.sql("ROLLBACK");
    return setting == "on";
  };
  const Request release = request(Verb::release, 1, kKey);
  EXPECT_TRUE(waits(StatementId::acquire_new, acquire(9, "DEFAULT:free")));
  EXPECT_TRUE(waits(StatementId::apply_one, acquire(9, "DEFAULT:free")));
  EXPECT_TRUE(waits(StatementId::renew, request(Verb::renew, 1, kKey)));
  for (const auto id : {StatementId::release, StatementId::release_many, StatementId::apply_one}) {
    EXPECT_FALSE(waits(id, release)) << static_cast<int>(id);
  }
  Request noted = release;
  noted.change.text = "noted";
  EXPECT_TRUE(waits(StatementId::release_noted, noted));
  EXPECT_FALSE(waits(StatementId::apply_one, acquire(9, kKey, Millis(9'000))));
  ask(*store, acquire(2, kKey, Millis(20'000)));
  // This release promotes a waiter: a token is granted.
  EXPECT_TRUE(waits(StatementId::apply_one, release));
}

TEST_F(PostgresStore, a_hand_over_reads_the_head_of_a_long_queue_only) {
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  std::vector<Request> crowd;
  for (std::uint64_t i = 2; i <= 1001; ++i) crowd.push_back(acquire(i, kKey, Millis(60'000)));
  ASSERT_TRUE(store->apply(crowd, soon()));
  Session session(database.url());
  session.sql("SET enable_seqscan = off; SET enable_bitmapscan = off");
  session.sql("BEGIN");
  EXPECT_EQ(run(session, StatementId::apply_one, request(Verb::release, 1, kKey)), 1);
  const auto read = session.sql(
      "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables "
      "WHERE relname = 'waiter' AND schemaname = 'baton'");
  session.sql("ROLLBACK");
  EXPECT_LT(std::stoi(read), 40);
}

TEST_F(PostgresStore, a_request_whose_client_gave_up_grants_nothing_once_it_is_cancelled) {
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  ask(*store, request(Verb::release, 1, kKey));
  Session other(database.url());
  other.sql("BEGIN");
  other.sql("SELECT 1 FROM baton.lock WHERE key = '" + kKey + "' FOR UPDATE");
  const auto late = ask(*store, acquire(2, kKey), in(Millis(100)));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::unavailable);
  EXPECT_TRUE(late.error().in_doubt);
  EXPECT_TRUE(late.error().retryable);
  Request cancel = request(Verb::cancel, 2, kKey);
  cancel.tombstone_ttl = Millis(30'000);
  Result<Reply> cancelled = Error{};
  std::jthread canceller([&] {
    // The row may stay locked longer than one attempt may last.
    for (const auto limit = soon(); !cancelled && BootClock::now() < limit;) {
      cancelled = ask(*store, cancel, soon());
    }
  });
  other.sql("COMMIT");
  canceller.join();
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  EXPECT_EQ(cancelled->outcome, Outcome::done);
  // Nobody works on it any more, and nothing was granted, whichever came first.
  ASSERT_TRUE(poll_until([&] {
    return other.sql(
               "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND datname = "
               "current_database() AND pid <> pg_backend_pid()") == "0";
  }));
  EXPECT_TRUE(store->find({}, soon()).value().items.empty());
  EXPECT_EQ(ask(*store, acquire(2, kKey)).outcome, Outcome::lost);
  EXPECT_EQ(ask(*store, acquire(3, kKey)).outcome, Outcome::granted);
}

TEST_F(PostgresStore, the_server_gives_up_before_the_client_does) {
  const auto store = database.store("?baton_apply_timeout=10s");
  ask(*store, acquire(1, kKey));
  ask(*store, request(Verb::release, 1, kKey));
  Session other(database.url());
  other.sql("BEGIN");
  other.sql("SELECT 1 FROM baton.lock WHERE key = '" + kKey + "' FOR UPDATE");
  const auto refused = ask(*store, acquire(2, kKey), soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_TRUE(refused.error().retryable);
  EXPECT_FALSE(refused.error().in_doubt);
}

TEST_F(PostgresStore, a_row_that_somebody_has_locked_costs_the_rest_of_its_batch_nothing) {
  const auto store = database.store("?baton_apply_timeout=10s");
  std::vector<Request> batch;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    batch.push_back(acquire(i, "DEFAULT:job:" + std::to_string(i)));
  }
  ASSERT_TRUE(store->apply(batch, soon()));
  Session other(database.url());
  other.sql("BEGIN");
  other.sql("SELECT 1 FROM baton.lock WHERE key = 'DEFAULT:job:7' FOR UPDATE");
  for (Request& one : batch) one = request(Verb::renew, one.grant.low, one.targets[0].key);
  const auto replies = store->apply(batch, soon());
  ASSERT_TRUE(replies) << replies.error().message;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(replies->at(i).outcome, i == 6 ? Outcome::busy : Outcome::granted) << i;
  }
  other.sql("COMMIT");
  EXPECT_EQ(ask(*store, batch[6]).outcome, Outcome::granted);
}

TEST_F(PostgresStore, a_store_has_at_most_four_connections) {
  class Deaf final : public WakeSink {
    void wake(std::span<const GrantId> /*grants*/) override {}
  } sink;
  const auto store = database.store();
  const auto watch = store->watch("a", sink);
  std::atomic<bool> stop{false};
  std::atomic<int> problems{0};
  {
    std::vector<std::jthread> callers;
    for (std::uint64_t t = 0; t < 16; ++t) {
      callers.emplace_back([&, t] {
        const std::string key = "DEFAULT:k:" + std::to_string(t);
        while (!stop) {
          for (const Request& one :
               {acquire(t, key), request(Verb::renew, t, key), request(Verb::release, t, key)}) {
            if (!ask(*store, one, soon())) ++problems;
          }
        }
      });
    }
    Session session(database.url());
    const std::string count =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = "
        "current_database() AND application_name = 'baton'";
    EXPECT_TRUE(poll_until([&] { return session.sql(count) == "4"; }));
    for (int i = 0; i < 100; ++i) EXPECT_LE(std::stoi(session.sql(count)), 4);
    stop = true;
  }
  EXPECT_EQ(problems, 0);
}

class Listener final : public WakeSink {
 public:
  void wake(std::span<const GrantId> grants) override {
    const std::lock_guard lock(mutex_);
    for (const GrantId id : grants) grants_.push_back(id);
    if (grants.empty()) ++for_any_;
    signal_.notify_all();
  }
  bool heard(GrantId grant) {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(lock, patience, [&] {
      return std::find(grants_.begin(), grants_.end(), grant) != grants_.end();
    });
  }
  bool woken_for_any(int times) {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(lock, patience, [&] { return for_any_ >= times; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  std::vector<GrantId> grants_;
  int for_any_ = 0;
};

TEST_F(PostgresStore, a_promoted_waiter_of_another_process_is_woken_by_name) {
  const auto ours = database.store();
  const auto theirs = database.store();
  Listener listener;
  const auto watch = theirs->watch("process-2", listener);
  ASSERT_TRUE(listener.woken_for_any(1));  // it listens now
  ask(*ours, acquire(1, kKey));
  ask(*theirs, acquire(2, kKey, Millis(20'000)));
  ask(*ours, request(Verb::release, 1, kKey));
  EXPECT_TRUE(listener.heard(grant(2)));
}

TEST_F(PostgresStore, everybody_is_woken_when_the_listener_had_to_reconnect) {
  const auto store = database.store();
  Listener listener;
  const auto watch = store->watch("process-1", listener);
  ASSERT_TRUE(listener.woken_for_any(1));
  Session(database.url())
      .sql(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
          "current_database() AND query LIKE 'LISTEN%'");
  EXPECT_TRUE(listener.woken_for_any(2));
}

TEST_F(PostgresStore, nobody_listens_any_longer_to_a_channel_that_nobody_watches) {
  const auto store = database.store();
  Session session(database.url());
  const auto says = [&](const std::string& words) {
    return poll_until([&] {
      // Behind its last words there may come a sweep, and nothing else.
      return session.sql(
                 "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND "
                 "pid <> pg_backend_pid() AND (query LIKE '%baton.sweep%' OR query LIKE '" +
                 words + "%')") == "1";
    });
  };
  const std::string name = store::postgres::notify_channel("a");
  Listener listener;
  auto first = store->watch("a", listener);
  auto second = store->watch("a", listener);
  ASSERT_TRUE(says("LISTEN " + name));
  first.reset();
  second.reset();
  const auto other = store->watch("b", listener);
  // In one statement with the end of the other, or after it.
  EXPECT_TRUE(says("%LISTEN " + store::postgres::notify_channel("b")));
  const auto again = store->watch("a", listener);
  EXPECT_TRUE(says("LISTEN " + name)) << "it was listened to all the time";
}

// Every lock is held by one at a time, whatever many threads ask of two stores in batches.
TEST_F(PostgresStore, batches_of_many_threads_exclude_each_other_without_deadlock) {
  const std::unique_ptr<LockStore> stores[] = {database.store(), database.store()};
  std::array<std::atomic<int>, 12> inside{};
  std::atomic<int> broken{0};
  std::atomic<int> granted{0};
  const auto until = in(seconds(3));
  const auto at_the_latest = in(seconds(60));
  const auto go_on = [&] {
    return BootClock::now() < until || (granted <= 100 && BootClock::now() < at_the_latest);
  };
  const auto work = [&](std::uint64_t t) {
    std::mt19937_64 random(t);
    for (std::uint64_t round = 1; go_on(); ++round) {
      std::vector<Request> batch;
      for (std::uint64_t i = 0; i < 4; ++i) {
        Request one = acquire(t << 40 | round << 8 | i, "");
        one.targets.clear();
        std::vector<int> keys(12);
        for (int k = 0; k < 12; ++k) keys[k] = k;
        std::shuffle(keys.begin(), keys.end(), random);
        keys.resize(1 + random() % 3);
        for (const int k : keys) one.targets.push_back({"DEFAULT:k:" + std::to_string(k), Mode::X});
        batch.push_back(one);
      }
      const auto replies = stores[t % 2]->apply(batch, soon());
      ASSERT_TRUE(replies) << replies.error().message;
      std::vector<Request> ends;
      const auto each_key = [&](const Request& one, auto change) {
        for (const Target& target : one.targets)
          change(inside.at(std::stoul(target.key.substr(10))));
      };
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (replies->at(i).outcome != Outcome::granted) continue;
        ++granted;
        each_key(batch[i], [&](auto& count) { broken += ++count != 1; });
        ends.push_back(batch[i]);
        ends.back().verb = Verb::release;
      }
      for (const Request& one : ends) each_key(one, [](auto& count) { --count; });
      ASSERT_TRUE(stores[t % 2]->apply(ends, soon()));
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 1; t <= 8; ++t) threads.emplace_back(work, t);
  }
  EXPECT_EQ(broken, 0);
  EXPECT_GT(granted, 100);
  EXPECT_EQ(Session(database.url())
                .sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"),
            "0");
}

TEST_F(PostgresStore, forgotten_names_are_swept_and_their_tokens_never_come_back) {
  std::atomic<std::int64_t> now{1'000'000'000'000};
  const auto store =
      store::open_postgres_store(
          {.url = database.url(), .now = [&] { return core::StoreTime(now.load()); }}, soon())
          .value();
  const Token before = ask(*store, acquire(1, "DEFAULT:done")).tokens.at(0);
  ask(*store, request(Verb::release, 1, "DEFAULT:done"));
  ask(*store, acquire(2, "DEFAULT:expired"));
  Request noted = acquire(3, "DEFAULT:noted");
  noted.change.text = "keep me";
  ask(*store, noted);
  ask(*store, acquire(4, "DEFAULT:waited"));
  ask(*store, acquire(5, "DEFAULT:waited", Millis(1'000)));
  now += core::StoreTime(std::chrono::minutes(5)).count();
  Request held = acquire(6, "DEFAULT:held");
  held.ttl = std::chrono::hours(1);
  ask(*store, held);
  Session session(database.url());
  const auto sweep = [&] {
    EXPECT_EQ(session.sql("SELECT baton.sweep('', 100, " + std::to_string(now) + ")"), "");
    return session.sql("SELECT string_agg(key, ' ' ORDER BY key) FROM baton.lock");
  };
  EXPECT_EQ(sweep(), "DEFAULT:done DEFAULT:expired DEFAULT:held DEFAULT:noted DEFAULT:waited");
  now += core::StoreTime(std::chrono::minutes(6)).count();
  EXPECT_EQ(sweep(), "DEFAULT:held DEFAULT:noted");
  EXPECT_EQ(session.sql("SELECT count(*) FROM baton.waiter"), "0");
  EXPECT_GT(ask(*store, acquire(7, "DEFAULT:done")).tokens.at(0), before);
  EXPECT_EQ(ask(*store, acquire(8, "DEFAULT:noted")).note.text, "keep me");
}

TEST_F(PostgresStore, a_wrong_guess_costs_a_round_trip_and_nothing_else) {
  const auto store = database.store();
  Session session(database.url());
  const Reply first = ask(*store, acquire(1, kKey));
  ASSERT_EQ(first.outcome, Outcome::granted);
  EXPECT_EQ(ask(*store, request(Verb::release, 1, kKey)).outcome, Outcome::done);
  session.sql("DELETE FROM baton.lock");  // as a sweep would, behind the store's back
  const Reply second = ask(*store, acquire(2, kKey));
  EXPECT_EQ(second.outcome, Outcome::granted);
  EXPECT_GT(second.tokens.at(0), first.tokens.at(0));
  EXPECT_EQ(ask(*store, acquire(3, kKey)).outcome, Outcome::busy);
}

TEST_F(PostgresStore, the_note_alone_decides_which_schema_is_in_force) {
  const auto store = database.store();
  Session session(database.url());
  session.sql("SELECT setval('baton.schema_version', 7)");  // as a change that was rolled back
  EXPECT_EQ(ask(*store, acquire(1, kKey)).outcome, Outcome::granted);
  Request schema = acquire(2, std::string(core::kSchemaKey));
  schema.change = {.ordinal = 7, .text = "{}"};
  ASSERT_EQ(ask(*store, schema).outcome, Outcome::granted);
  EXPECT_EQ(ask(*store, acquire(3, "DEFAULT:job:2")).outcome, Outcome::denied);
}

TEST_F(PostgresStore, a_request_that_the_server_cannot_take_harms_nobody_else) {
  // The functions are gone under a running store: everything fails, in words, and nothing hangs.
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  Session(database.url()).sql("DROP SCHEMA baton CASCADE");
  const auto gone = ask(*store, acquire(2, kKey), soon());
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, Code::bad_store);
  database.migrate();
  EXPECT_EQ(ask(*store, acquire(2, kKey)).outcome, Outcome::granted);
}

// These stop the server, so they have one of their own.

TEST(PostgresServerFault, a_store_goes_on_after_its_server_restarted) {
  PostgresServer server;
  const Database database(server.url());
  database.migrate();
  const auto store = database.store();
  Listener listener;
  const auto watch = store->watch("process-2", listener);
  ASSERT_TRUE(listener.woken_for_any(1));
  const Token before = ask(*store, acquire(1, kKey)).tokens.at(0);
  server.restart();
  EXPECT_EQ(ask(*store, acquire(2, kKey, Millis(20'000))).outcome, Outcome::queued);
  ASSERT_TRUE(listener.woken_for_any(2));
  EXPECT_EQ(ask(*store, request(Verb::release, 1, kKey)).outcome, Outcome::done);
  EXPECT_TRUE(listener.heard(grant(2)));
  EXPECT_GT(ask(*store, request(Verb::claim, 2, kKey)).tokens.at(0), before);
}

TEST(PostgresServerFault, a_stopped_server_is_unavailable_within_the_deadline) {
  PostgresServer server;
  const Database database(server.url());
  database.migrate();
  const auto store = database.store();
  ask(*store, acquire(1, kKey));
  server.stop();
  const auto refused = ask(*store, acquire(2, kKey), in(Millis(300)));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable);
  EXPECT_TRUE(refused.error().retryable);
  EXPECT_FALSE(refused.error().in_doubt);
  server.start();
  EXPECT_EQ(ask(*store, acquire(2, kKey)).outcome, Outcome::busy);
}

TEST(PostgresServerFault, grants_and_notes_survive_a_crash_and_tokens_still_grow) {
  PostgresServer server;
  const Database database(server.url());
  database.migrate();
  const auto store = database.store();
  Token last = 0;
  for (std::uint64_t round = 1; round <= 3; ++round) {
    Request one = acquire(round, "DEFAULT:job:" + std::to_string(round));
    one.change = {.ordinal = static_cast<std::int64_t>(round), .text = "round"};
    const Token token = ask(*store, one).tokens.at(0);
    EXPECT_GT(token, last);
    last = token;
    server.crash();
    server.start();
    const Reply again = ask(*store, one);
    ASSERT_EQ(again.outcome, Outcome::granted);
    EXPECT_EQ(again.tokens.at(0), token);
    EXPECT_EQ(again.note, (Note{static_cast<std::int64_t>(round), "round"}));
  }
}

}  // namespace
}  // namespace baton::test
