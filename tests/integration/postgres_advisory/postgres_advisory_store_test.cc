// postgres-advisory: between processes (two stores are as good as two), with other programs that
// use advisory locks, and with the server's own timers.

#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "baton/fence.h"
#include "integration/postgres/postgres_around.h"
#include "integration/postgres_advisory/postgres_advisory_database.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

const std::string kJob = "DEFAULT:job";
constexpr Millis kQueueTtl{10'000};

// Collects the grants it is woken for.
class Sink final : public WakeSink {
 public:
  void wake(std::span<const GrantId> grants) override {
    const std::lock_guard lock(mutex_);
    woken_.insert(woken_.end(), grants.begin(), grants.end());
    signal_.notify_all();
  }
  bool hears(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(lock, patience, [&] {
      return std::find(woken_.begin(), woken_.end(), grant(number)) != woken_.end();
    });
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  std::vector<GrantId> woken_;
};

Request waiting(std::uint64_t number, const std::string& key = kJob) {
  return acquire(number, key, kQueueTtl);
}

// Of the holder.
Request breaks(const std::string& key) {
  Request broken = request(Verb::break_, 0, key);
  broken.grant = {};
  return broken;
}

TEST(PostgresAdvisory, two_processes_exclude_each_other_and_see_each_other) {
  const AdvisoryDatabase database;
  const auto one = database.store();
  const auto two = database.store();
  Request first = acquire(1, kJob);
  first.metadata = {{"why", "a \"good\" reason"}};
  first.change = {.ordinal = 7, .text = "seven"};
  const Token token = ask(*one, first).tokens.at(0);
  const Reply busy = ask(*two, acquire(2, kJob));
  EXPECT_EQ(busy.outcome, Outcome::busy);
  ASSERT_EQ(busy.holders.size(), 1U);
  const HolderInfo& holder = busy.holders[0];
  EXPECT_EQ(holder.grant, grant(1));
  EXPECT_EQ(holder.owner, "node-1");
  EXPECT_EQ(holder.token, token);
  EXPECT_EQ(holder.metadata, first.metadata);
  EXPECT_GT(holder.expires_in, 0ms);
  EXPECT_LE(holder.expires_in, holder.ttl);
  EXPECT_EQ(ask(*two, waiting(2)).outcome, Outcome::queued);
  ASSERT_TRUE(poll_until([&] { return look(*one, kJob).waiting == 1; }));
  const auto found = one->find({}, soon()).value().items;
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].note, (Note{7, "seven"}));
  EXPECT_EQ(found[0].waiters.at(0).owner, "node-2");
  EXPECT_EQ(ask(*one, request(Verb::release, 1, kJob)).outcome, Outcome::done);
}

TEST(PostgresAdvisory, the_server_hands_over_in_the_order_in_which_processes_came) {
  const AdvisoryDatabase database;
  std::vector<std::unique_ptr<LockStore>> stores;
  for (int i = 0; i < 4; ++i) stores.push_back(database.store());
  Sink sink;
  std::vector<std::unique_ptr<Watch>> watches;
  Token last = ask(*stores[0], acquire(1, kJob)).tokens.at(0);
  for (std::uint64_t i = 2; i <= 4; ++i) {
    watches.push_back(stores[i - 1]->watch("process-" + std::to_string(i), sink));
    EXPECT_EQ(ask(*stores[i - 1], waiting(i)).outcome, Outcome::queued);
    ASSERT_TRUE(poll_until([&] { return look(*stores[0], kJob).waiting == i - 1; }));
  }
  for (std::uint64_t i = 2; i <= 4; ++i) {
    EXPECT_EQ(ask(*stores[i - 2], request(Verb::release, i - 1, kJob)).outcome, Outcome::done);
    ASSERT_TRUE(sink.hears(i));
    const Reply reply = ask(*stores[i - 1], request(Verb::claim, i, kJob));
    ASSERT_EQ(reply.outcome, Outcome::granted);
    EXPECT_GT(reply.tokens.at(0), last);
    last = reply.tokens[0];
  }
}

TEST(PostgresAdvisory, readers_share_and_a_writer_waits_for_them) {
  const AdvisoryDatabase database;
  const auto one = database.store();
  const auto two = database.store();
  EXPECT_EQ(ask(*one, request(Verb::acquire, 1, kJob, Mode::S)).outcome, Outcome::granted);
  EXPECT_EQ(ask(*two, request(Verb::acquire, 2, kJob, Mode::S)).outcome, Outcome::granted);
  EXPECT_EQ(look(*one, kJob).holders.size(), 2U);
  EXPECT_EQ(ask(*two, waiting(3)).outcome, Outcome::queued);
  ASSERT_TRUE(poll_until([&] { return look(*one, kJob).waiting == 1; }));
  EXPECT_EQ(ask(*one, request(Verb::acquire, 4, kJob, Mode::S)).outcome, Outcome::busy);
  EXPECT_EQ(ask(*one, request(Verb::release, 1, kJob, Mode::S)).outcome, Outcome::done);
  EXPECT_EQ(ask(*two, request(Verb::claim, 3, kJob)).outcome, Outcome::queued);
  EXPECT_EQ(ask(*two, request(Verb::release, 2, kJob, Mode::S)).outcome, Outcome::done);
  EXPECT_TRUE(poll_until(
      [&] { return ask(*two, request(Verb::claim, 3, kJob)).outcome == Outcome::granted; }));
}

TEST(PostgresAdvisory, a_numeric_key_is_the_one_that_other_programs_use) {
  const AdvisoryDatabase database;
  const auto store = database.store("?key=4856221667890123456");
  Session other(database.url());
  ASSERT_EQ(other.sql("SELECT pg_try_advisory_lock(4856221667890123456)"), "t");
  const Reply busy = ask(*store, acquire(1, "DEFAULT:outbox"));
  EXPECT_EQ(busy.outcome, Outcome::busy);
  ASSERT_EQ(busy.holders.size(), 1U);
  EXPECT_NE(busy.holders[0].owner.find("a session of its own"), std::string::npos);
  EXPECT_EQ(ask(*store, waiting(2, "DEFAULT:outbox")).outcome, Outcome::queued);
  EXPECT_EQ(ask(*store, request(Verb::claim, 2, "DEFAULT:outbox")).outcome, Outcome::queued);
  ASSERT_EQ(other.sql("SELECT pg_advisory_unlock(4856221667890123456)"), "t");
  EXPECT_TRUE(poll_until([&] {
    return ask(*store, request(Verb::claim, 2, "DEFAULT:outbox")).outcome == Outcome::granted;
  }));
  EXPECT_EQ(other.sql("SELECT pg_try_advisory_lock(4856221667890123456)"), "f");
  EXPECT_EQ(ask(*store, acquire(3, "DEFAULT:another")).outcome, Outcome::busy)
      << "one key is one lock, whatever the name";
  EXPECT_EQ(ask(*store, request(Verb::release, 2, "DEFAULT:outbox")).outcome, Outcome::done);
  EXPECT_EQ(other.sql("SELECT pg_try_advisory_lock(4856221667890123456)"), "t");
}

// A session practises for its hand-over on rows that are nobody's, whatever the key.
TEST(PostgresAdvisory, a_waiter_for_key_0_does_not_touch_the_holders_row_before_its_turn) {
  const AdvisoryDatabase database;
  const auto store = database.store("?key=0&baton_apply_timeout=60s");
  ASSERT_EQ(ask(*store, acquire(1, kJob)).outcome, Outcome::granted);
  Session other(database.url());
  other.sql("BEGIN");
  other.sql("SELECT pid FROM baton_advisory.term WHERE lock_key = 0 FOR UPDATE");
  const auto queued = ask(*store, waiting(2), in(8s));  // the row would be waited for for 12 s
  ASSERT_TRUE(queued) << queued.error().message;
  EXPECT_EQ(queued->outcome, Outcome::queued);
  other.sql("ROLLBACK");
}

// Replicas of two versions of Baton must agree for ever.
TEST(PostgresAdvisory, the_key_of_a_name_never_changes) {
  const AdvisoryDatabase database;
  EXPECT_EQ(lock_key(database.url(), "DEFAULT:a"), "-2667497409358317233");
  const auto store = database.store();
  EXPECT_EQ(ask(*store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(Session(database.url()).sql("SELECT pg_try_advisory_lock(-2667497409358317233)"), "f");
}

TEST(PostgresAdvisory, a_holder_that_falls_silent_is_freed_by_the_server_after_its_ttl) {
  const AdvisoryDatabase database;
  const auto silent = database.store();
  const auto next = database.store();
  ASSERT_EQ(ask(*silent, with_ttl(acquire(1, kJob), 1500ms)).outcome, Outcome::granted);
  const std::string pid = Session(database.url()).sql("SELECT pid FROM baton_advisory.term");
  EXPECT_EQ(ask(*next, waiting(2)).outcome, Outcome::queued);
  EXPECT_TRUE(poll_until(
      [&] { return ask(*next, request(Verb::claim, 2, kJob)).outcome == Outcome::granted; }));
  EXPECT_EQ(ask(*silent, request(Verb::renew, 1, kJob)).outcome, Outcome::lost);
}

// Beats until three TTLs are over or the lock is lost. Nothing if a beat came late: whatever became
// of the lock then, only this machine has shown something.
std::optional<Reply> beat_for_three_ttls(LockStore& store, const std::string& key, Millis ttl) {
  auto last_sent = BootClock::now();
  const auto until = last_sent + 3 * ttl;
  Reply reply = ask(store, with_ttl(acquire(1, key), ttl));
  while (reply.outcome == Outcome::granted && last_sent < until) {
    std::this_thread::sleep_for(ttl / 20);
    const auto sent = BootClock::now();
    reply = ask(store, request(Verb::renew, 1, key));
    if (BootClock::now() - last_sent > ttl / 2) return std::nullopt;
    last_sent = sent;
  }
  return reply;
}

TEST(PostgresAdvisory, heartbeats_keep_a_lock_for_as_long_as_they_come) {
  const AdvisoryDatabase database;
  const auto store = database.store();
  for (Millis ttl = 1s; ttl <= 32s; ttl *= 2) {
    const auto reply = beat_for_three_ttls(*store, kJob + std::to_string(ttl.count()), ttl);
    if (!reply) continue;
    EXPECT_EQ(reply->outcome, Outcome::granted) << reply->message;
    return;
  }
  FAIL() << "this machine could not beat every 16 s";
}

TEST(PostgresAdvisory, a_waiter_that_does_not_come_for_its_lock_is_passed_over) {
  const AdvisoryDatabase database;
  const auto one = database.store();
  const auto two = database.store();
  ASSERT_EQ(ask(*one, acquire(1, kJob)).outcome, Outcome::granted);
  Request lazy = waiting(2);
  lazy.claim_within = 300ms;
  ASSERT_EQ(ask(*two, lazy).outcome, Outcome::queued);
  ASSERT_TRUE(poll_until([&] { return look(*one, kJob).waiting == 1; }));
  ASSERT_EQ(ask(*one, waiting(3)).outcome, Outcome::queued);
  ASSERT_EQ(ask(*one, request(Verb::release, 1, kJob)).outcome, Outcome::done);
  EXPECT_TRUE(poll_until(
      [&] { return ask(*one, request(Verb::claim, 3, kJob)).outcome == Outcome::granted; }));
  EXPECT_EQ(ask(*two, request(Verb::claim, 2, kJob)).outcome, Outcome::lost);
}

TEST(PostgresAdvisory, at_least_for_outlives_the_process_that_asked_for_it) {
  const AdvisoryDatabase database;
  Request once = acquire(1, kJob);
  once.at_least_for = 60s;
  auto store = database.store();
  ASSERT_EQ(ask(*store, once).outcome, Outcome::granted);
  store.reset();
  store = database.store();
  const Reply busy = ask(*store, acquire(2, kJob));
  EXPECT_EQ(busy.outcome, Outcome::busy);
  EXPECT_GT(busy.retry_after, 30s);
  Session(database.url()).sql("UPDATE baton_advisory.term SET keep_until = keep_until - 60000000");
  EXPECT_TRUE(
      poll_until([&] { return ask(*store, acquire(2, kJob)).outcome == Outcome::granted; }));
}

TEST(PostgresAdvisory, the_holder_in_another_process_hears_at_once_that_it_is_broken) {
  const AdvisoryDatabase database;
  const auto holding = database.store();
  const auto breaking = database.store();
  Sink sink;
  const auto watch = holding->watch("process-1", sink);
  ASSERT_EQ(ask(*holding, acquire(1, kJob)).outcome, Outcome::granted);
  Request broken = breaks(kJob);
  broken.reason = "stuck";
  ASSERT_EQ(ask(*breaking, broken).holders.size(), 1U);
  EXPECT_TRUE(sink.hears(1));
  const Reply told = ask(*holding, request(Verb::renew, 1, kJob));
  EXPECT_EQ(told.outcome, Outcome::lost);
  EXPECT_NE(told.message.find("stuck"), std::string::npos) << told.message;
  EXPECT_EQ(ask(*breaking, acquire(2, kJob)).outcome, Outcome::busy) << "it has not let go yet";
  EXPECT_EQ(ask(*holding, request(Verb::release, 1, kJob)).outcome, Outcome::done);
  EXPECT_EQ(ask(*breaking, acquire(2, kJob)).outcome, Outcome::granted);
}

TEST(PostgresAdvisory, a_lock_broken_at_once_is_free_at_once) {
  const AdvisoryDatabase database;
  const auto holding = database.store();
  const auto breaking = database.store();
  Sink sink;
  const auto watch = holding->watch("process-1", sink);
  ASSERT_EQ(ask(*holding, acquire(1, kJob)).outcome, Outcome::granted);
  Request broken = breaks(kJob);
  broken.immediately = true;
  ASSERT_EQ(ask(*breaking, broken).outcome, Outcome::done);
  EXPECT_EQ(ask(*breaking, acquire(2, kJob)).outcome, Outcome::granted);
  EXPECT_TRUE(sink.hears(1));
  EXPECT_EQ(ask(*holding, request(Verb::renew, 1, kJob)).outcome, Outcome::lost);
}

TEST(PostgresAdvisory, the_session_of_another_role_is_not_ours_to_end) {
  const AdvisoryDatabase database;
  const Role role(database);
  Session(database.url())
      .sql("GRANT USAGE ON SCHEMA baton_advisory TO " + role.name() +
           ";GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton_advisory TO " +
           role.name() + ";GRANT USAGE ON ALL SEQUENCES IN SCHEMA baton_advisory TO " +
           role.name());
  const auto holding = database.store();
  const auto other =
      open_postgres_advisory_store(advisory(database.url_as(role.name())), soon()).value();
  ASSERT_EQ(ask(*holding, acquire(1, kJob)).outcome, Outcome::granted);
  Request broken = breaks(kJob);
  broken.immediately = true;
  const Reply reply = ask(*other, broken);
  EXPECT_EQ(reply.outcome, Outcome::denied);
  EXPECT_NE(reply.message.find("pg_signal_backend"), std::string::npos) << reply.message;
  EXPECT_EQ(look(*other, kJob).holders.size(), 1U);
}

TEST(PostgresAdvisory, a_fence_beside_the_locks_knows_a_newer_holder_before_it_writes) {
  const AdvisoryDatabase database;
  const auto one = database.store();
  const auto two = database.store();
  Session data(database.url());
  install_fence(data.get()).value();
  const auto write_under = [&](Token token) {
    data.sql("BEGIN");
    const auto allowed = fence(data.get(), kJob, Mode::X, token);
    data.sql("ROLLBACK");
    return allowed ? Code{} : allowed.error().code;
  };
  const Token old = ask(*one, acquire(1, kJob)).tokens.at(0);
  EXPECT_NE(write_under(old), Code::fenced);
  ASSERT_EQ(ask(*one, request(Verb::release, 1, kJob)).outcome, Outcome::done);
  const Token next = ask(*two, acquire(2, kJob)).tokens.at(0);
  EXPECT_EQ(write_under(old), Code::fenced);
  EXPECT_NE(write_under(next), Code::fenced);
}

TEST(PostgresAdvisory, no_more_wait_than_the_url_allows) {
  const AdvisoryDatabase database;
  const auto store = database.store("?baton_max_waiters=2");
  EXPECT_EQ(store->capabilities().max_waiters, 2U);
  ASSERT_EQ(ask(*store, acquire(1, kJob)).outcome, Outcome::granted);
  EXPECT_EQ(ask(*store, waiting(2)).outcome, Outcome::queued);
  EXPECT_EQ(ask(*store, waiting(3)).outcome, Outcome::queued);
  EXPECT_EQ(ask(*store, waiting(4)).outcome, Outcome::busy) << "ask again later, not refused";
  EXPECT_EQ(ask(*store, request(Verb::cancel, 3, kJob)).outcome, Outcome::done);
  EXPECT_EQ(ask(*store, waiting(4)).outcome, Outcome::queued);
}

TEST(PostgresAdvisory, a_batch_of_renewals_is_one_round_of_heartbeats) {
  const AdvisoryDatabase database;
  const auto store = database.store();
  std::vector<Request> renewals;
  for (std::uint64_t i = 1; i <= 20; ++i) {
    const std::string key = "DEFAULT:many:" + std::to_string(i);
    ASSERT_EQ(ask(*store, acquire(i, key)).outcome, Outcome::granted);
    renewals.push_back(request(Verb::renew, i, key));
  }
  renewals[7].change = {.ordinal = 3, .text = "eight"};
  renewals.push_back(renewals[7]);  // the same session twice
  const auto replies = store->apply(renewals, soon()).value();
  for (const Reply& reply : replies) EXPECT_EQ(reply.outcome, Outcome::granted) << reply.message;
  EXPECT_EQ(replies[7].note, Note{});
  EXPECT_EQ(replies[20].note, (Note{3, "eight"}));
}

TEST(PostgresAdvisory, a_waiter_that_has_died_does_not_stand_in_the_queue_for_long) {
  const AdvisoryDatabase database;
  const auto one = database.store();
  auto two = database.store();
  ASSERT_EQ(ask(*one, acquire(1, kJob)).outcome, Outcome::granted);
  ASSERT_EQ(ask(*two, waiting(2)).outcome, Outcome::queued);
  ASSERT_TRUE(poll_until([&] { return look(*one, kJob).waiting == 1; }));
  two.reset();
  EXPECT_TRUE(poll_until([&] { return look(*one, kJob).waiting == 0; }));
}

TEST(PostgresAdvisory, what_it_cannot_do_it_says) {
  const AdvisoryDatabase database;
  const auto store = database.store();
  const auto refused = [&](const Request& asked) {
    const Reply reply = ask(*store, asked);
    EXPECT_FALSE(reply.message.empty());
    return reply.outcome == Outcome::unsupported;
  };
  EXPECT_TRUE(refused(request(Verb::acquire, 1, kJob, Mode::U)));
  EXPECT_TRUE(refused(request(Verb::convert, 1, kJob)));
  Request set = acquire(1, kJob);
  set.targets.push_back({"DEFAULT:other", Mode::X});
  EXPECT_TRUE(refused(set));
  Request transfer = request(Verb::release, 1, kJob);
  transfer.to = "node-2";
  EXPECT_TRUE(refused(transfer));
}

}  // namespace
}  // namespace baton::test
