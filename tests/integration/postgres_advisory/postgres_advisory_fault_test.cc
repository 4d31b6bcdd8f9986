// postgres-advisory: when the server crashes, the network is cut, or a session is ended.

#include <gtest/gtest.h>

#include <condition_variable>
#include <csignal>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "integration/postgres_advisory/postgres_advisory_database.h"
#include "support/fault_proxy.h"
#include "support/postgres_server.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

const std::string kJob = "DEFAULT:job";

// Waits until it is woken for anything.
class Bell final : public WakeSink {
 public:
  void wake(std::span<const GrantId>) override {
    const std::lock_guard lock(mutex_);
    rung_ = true;
    signal_.notify_all();
  }
  bool rings() {
    std::unique_lock lock(mutex_);
    return signal_.wait_for(lock, patience, [&] { return rung_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  bool rung_ = false;
};

class PostgresAdvisoryFault : public ::testing::Test {
 protected:
  PostgresServer server;
  AdvisoryDatabase database{server.url()};

  // How long from `from` until `store` gets the lock for this grant.
  static Millis time_to_get(LockStore& store, std::uint64_t number, Instant from) {
    EXPECT_TRUE(poll_until(
        [&] {
          const auto reply = ask(store, with_ttl(acquire(number, kJob), 2000ms), in(5s));
          return reply && reply->outcome == Outcome::granted;
        },
        60s, 20ms));
    return std::chrono::duration_cast<Millis>(BootClock::now() - from);
  }
};

TEST_F(PostgresAdvisoryFault, after_a_crash_the_next_holder_waits_out_the_ttl_of_the_last) {
  const auto one = database.store();
  const auto two = database.store();
  const Reply first = ask(*one, with_ttl(acquire(1, kJob), 4000ms));
  ASSERT_EQ(first.outcome, Outcome::granted);
  server.crash();
  const auto crashed = BootClock::now();
  server.start();
  EXPECT_GE(time_to_get(*two, 2, crashed), 4000ms);
  EXPECT_GT(look(*two, kJob).holders.at(0).token, first.tokens.at(0));
  EXPECT_EQ(ask(*one, request(Verb::renew, 1, kJob)).outcome, Outcome::lost);
}

TEST_F(PostgresAdvisoryFault, a_waiter_is_first_in_line_after_a_crash_and_waits_as_well) {
  const auto one = database.store();
  const auto two = database.store();
  ASSERT_EQ(ask(*one, with_ttl(acquire(1, kJob), 3000ms)).outcome, Outcome::granted);
  server.crash();
  const auto crashed = BootClock::now();
  server.start();
  Request queued = acquire(2, kJob, 10s);
  queued.claim_within = 2s;
  ASSERT_TRUE(poll_until([&] {
    const auto reply = ask(*two, queued, in(5s));
    return reply && reply->outcome == Outcome::queued;
  }));
  EXPECT_EQ(ask(*one, acquire(3, kJob), soon()).value().outcome, Outcome::busy);
  Reply reply;
  ASSERT_TRUE(poll_until(
      [&] {
        Request claim = request(Verb::claim, 2, kJob);
        claim.queue_ttl = 10s;
        reply = ask(*two, claim);
        return reply.outcome != Outcome::queued;
      },
      60s, 20ms));
  EXPECT_EQ(reply.outcome, Outcome::granted) << reply.message;
  EXPECT_GE(BootClock::now() - crashed, 3000ms);
}

TEST_F(PostgresAdvisoryFault, a_lock_that_was_let_go_before_the_crash_need_not_be_waited_for) {
  const auto one = database.store();
  ASSERT_EQ(ask(*one, with_ttl(acquire(1, kJob), 3600s)).outcome, Outcome::granted);
  Request last = request(Verb::release, 1, kJob);
  last.change.text = "kept";  // and with it, durably, that it was let go
  ASSERT_EQ(ask(*one, last).outcome, Outcome::done);
  server.restart(PostgresServer::StopMode::immediate);
  const auto two = database.store();
  const Reply reply = ask(*two, acquire(2, kJob));
  EXPECT_EQ(reply.outcome, Outcome::granted);
  EXPECT_EQ(reply.note.text, "kept");
}

TEST_F(PostgresAdvisoryFault, a_crash_of_one_backend_takes_all_locks_and_is_noticed) {
  const auto one = database.store();
  const auto two = database.store();
  Bell bell;
  const auto watch = one->watch("process-1", bell);
  ASSERT_EQ(ask(*one, with_ttl(acquire(1, kJob), 3000ms)).outcome, Outcome::granted);
  Session victim(database.url());
  ::kill(std::stoi(victim.sql("SELECT pg_backend_pid()")), SIGKILL);
  const auto crashed = BootClock::now();
  EXPECT_TRUE(bell.rings()) << "the holder was not told that its session has gone";
  EXPECT_EQ(ask(*one, request(Verb::renew, 1, kJob)).outcome, Outcome::lost);
  EXPECT_GE(time_to_get(*two, 2, crashed), 3000ms);
}

TEST_F(PostgresAdvisoryFault,
       the_holder_of_a_session_that_is_ended_hears_it_and_is_not_reconnected) {
  const auto store = database.store();
  Bell bell;
  const auto watch = store->watch("process-1", bell);
  ASSERT_EQ(ask(*store, acquire(1, kJob)).outcome, Outcome::granted);
  Session other(database.url());
  other.sql("SELECT pg_terminate_backend(pid, 5000) FROM baton_advisory.term");
  EXPECT_TRUE(bell.rings());
  const Reply told = ask(*store, request(Verb::renew, 1, kJob));
  EXPECT_EQ(told.outcome, Outcome::lost);
  EXPECT_NE(told.message.find("session"), std::string::npos) << told.message;
  EXPECT_EQ(ask(*store, request(Verb::release, 1, kJob)).outcome, Outcome::lost);
  EXPECT_EQ(other.sql("SELECT count(*) FROM baton_advisory.session_lock"), "0");
}

// Bit 1 stands for signal 1, and so on.
bool is_pending(pid_t pid, int signal) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("ShdPnd:")) continue;
    return (std::stoull(line.substr(7), nullptr, 16) >> (signal - 1) & 1) != 0;
  }
  return false;
}

// A cancelled statement does not give back what it has locked for its session.
TEST_F(PostgresAdvisoryFault,
       a_waiter_that_leaves_just_when_it_is_handed_the_lock_does_not_keep_it) {
  const auto store = database.store();
  Session other(database.url());
  const std::string key = lock_key(database.url(), kJob);
  ASSERT_EQ(other.sql("SELECT pg_try_advisory_lock(" + key + ")"), "t");
  ASSERT_EQ(ask(*store, acquire(1, kJob, 60s)).outcome, Outcome::queued);
  std::string pid;
  ASSERT_TRUE(poll_until([&] {
    pid = other.sql("SELECT max(pid) FROM baton_advisory.session_lock WHERE NOT granted");
    return !pid.empty();
  }));
  const pid_t waiting = std::stoi(pid);
  ASSERT_TRUE(stop_still(waiting));
  other.sql("SELECT pg_advisory_unlock(" + key + ")");  // hands it to a session that sleeps
  auto leaving = std::async(std::launch::async,
                            [&] { return ask(*store, request(Verb::cancel, 1, kJob)).outcome; });
  EXPECT_TRUE(poll_until([&] { return is_pending(waiting, SIGINT); }));
  ASSERT_EQ(::kill(waiting, SIGCONT), 0);
  EXPECT_EQ(leaving.get(), Outcome::done);
  EXPECT_EQ(other.sql("SELECT pg_try_advisory_lock(" + key + ")"), "t");
}

// A session that has gone silent while the others answer: its backend is stopped, so nothing that
// is sent to it is answered before it goes on.
class PostgresAdvisorySilence : public PostgresAdvisoryFault {
 protected:
  // Patience that would show: far longer than a whole test takes without the silent session.
  std::unique_ptr<LockStore> store = database.store("?baton_apply_timeout=20s");
  static constexpr Millis kQuick = 15s;

  class Silent {
   public:
    explicit Silent(pid_t pid) : pid_(pid) { EXPECT_TRUE(stop_still(pid)); }
    ~Silent() { go_on(); }
    Silent(const Silent&) = delete;
    Silent& operator=(const Silent&) = delete;
    void go_on() const { ::kill(pid_, SIGCONT); }

   private:
    const pid_t pid_;
  };

  [[nodiscard]] pid_t session_of(const std::string& key) const {
    return std::stoi(Session(database.url())
                         .sql("SELECT pid FROM baton_advisory.term WHERE key = '" + key + "'"));
  }
  [[nodiscard]] std::string ordinal_of(const std::string& key) const {
    return Session(database.url())
        .sql("SELECT max(ordinal) FROM baton_advisory.note WHERE key = '" + key + "'");
  }
  static Request noting(Request request, std::int64_t ordinal) {
    request.change.ordinal = ordinal;
    return request;
  }
  void hold(const std::vector<std::string>& keys, Millis ttl) const {
    for (std::uint64_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(ask(*store, with_ttl(acquire(i + 1, keys[i]), ttl)).outcome, Outcome::granted);
    }
  }
};

TEST_F(PostgresAdvisorySilence, costs_the_other_leases_of_the_process_nothing) {
  const std::vector<std::string> keys{"DEFAULT:a", "DEFAULT:b", "DEFAULT:c"};
  hold(keys, 18s);
  const Silent silent(session_of("DEFAULT:a"));
  std::vector<Request> renewals;
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    renewals.push_back(request(Verb::renew, i + 1, keys[i]));
  }
  const auto before = BootClock::now();
  const auto replies = store->apply(renewals, in(20s)).value();
  EXPECT_EQ(replies[0].outcome, Outcome::busy) << replies[0].message;
  EXPECT_EQ(replies[1].outcome, Outcome::granted) << replies[1].message;
  EXPECT_EQ(replies[2].outcome, Outcome::granted) << replies[2].message;
  const Reply again = ask(*store, renewals[0], in(20s)).value();
  EXPECT_TRUE(again.outcome == Outcome::busy || again.outcome == Outcome::lost) << again.message;
  EXPECT_LT(BootClock::now() - before, kQuick);
}

TEST_F(PostgresAdvisorySilence, ends_with_the_release) {
  hold({"DEFAULT:b", "DEFAULT:a"}, 8s);
  const Silent silent(session_of("DEFAULT:a"));
  const auto before = BootClock::now();
  ASSERT_EQ(ask(*store, request(Verb::renew, 2, "DEFAULT:a"), in(3s))->outcome, Outcome::busy);
  const Reply released =
      ask(*store, noting(request(Verb::release, 2, "DEFAULT:a"), 7), in(20s)).value();
  EXPECT_EQ(released.outcome, Outcome::lost) << "its note was not written";
  EXPECT_FALSE(released.message.empty());
  EXPECT_EQ(ask(*store, request(Verb::cancel, 2, "DEFAULT:a"), in(20s))->outcome, Outcome::done);
  EXPECT_LT(BootClock::now() - before, kQuick);
  silent.go_on();
  EXPECT_TRUE(
      poll_until([&] { return ask(*store, acquire(3, "DEFAULT:a")).outcome == Outcome::granted; }));
  EXPECT_EQ(ordinal_of("DEFAULT:a"), "");
}

TEST_F(PostgresAdvisorySilence, costs_the_others_nothing_either_if_a_release_finds_it) {
  hold({"DEFAULT:b", "DEFAULT:a"}, 8s);
  const Silent silent(session_of("DEFAULT:a"));
  const auto before = BootClock::now();
  const auto released = ask(*store, noting(request(Verb::release, 2, "DEFAULT:a"), 7), in(20s));
  ASSERT_FALSE(released) << to_string(released->outcome);
  EXPECT_TRUE(released.error().in_doubt) << "its note may be written";
  EXPECT_EQ(ask(*store, request(Verb::cancel, 2, "DEFAULT:a"), in(20s))->outcome, Outcome::done);
  EXPECT_LT(BootClock::now() - before, kQuick);
  silent.go_on();
  EXPECT_TRUE(
      poll_until([&] { return ask(*store, acquire(3, "DEFAULT:a")).outcome == Outcome::granted; }));
}

TEST_F(PostgresAdvisorySilence, costs_the_others_nothing_either_if_an_acquire_finds_it) {
  ASSERT_EQ(ask(*store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
  const pid_t unused = session_of("DEFAULT:a");
  hold({"DEFAULT:b"}, 8s);
  ASSERT_EQ(ask(*store, request(Verb::release, 1, "DEFAULT:a")).outcome, Outcome::done);
  const Silent silent(unused);
  const auto before = BootClock::now();
  const auto taken = ask(*store, acquire(3, "DEFAULT:c"), in(20s));
  ASSERT_FALSE(taken) << to_string(taken->outcome);
  EXPECT_TRUE(taken.error().in_doubt);
  EXPECT_LT(BootClock::now() - before, kQuick);
}

TEST_F(PostgresAdvisorySilence, ends_with_the_ttl_and_is_not_waited_for) {
  Bell bell;
  const auto watch = store->watch("process-1", bell);
  ASSERT_EQ(ask(*store, acquire(2, "DEFAULT:b")).outcome, Outcome::granted);
  hold({"DEFAULT:a"}, 8s);
  const Silent silent(session_of("DEFAULT:a"));
  const auto before = BootClock::now();
  ASSERT_EQ(ask(*store, request(Verb::renew, 1, "DEFAULT:a"), in(3s))->outcome, Outcome::busy);
  EXPECT_TRUE(bell.rings()) << "nobody ended it";
  EXPECT_EQ(ask(*store, request(Verb::renew, 2, "DEFAULT:b")).outcome, Outcome::granted);
  EXPECT_LT(BootClock::now() - before, kQuick);
}

TEST_F(PostgresAdvisorySilence, leaves_whoever_writes_a_note_in_doubt) {
  hold({kJob}, 30s);
  const Silent silent(session_of(kJob));
  const auto reply = ask(*store, noting(request(Verb::renew, 1, kJob), 7), in(3s));
  ASSERT_FALSE(reply) << to_string(reply->outcome);
  EXPECT_TRUE(reply.error().in_doubt);
  EXPECT_TRUE(reply.error().retryable);
  silent.go_on();
  EXPECT_TRUE(poll_until([&] { return ordinal_of(kJob) == "7"; }));
}

TEST_F(PostgresAdvisorySilence, leaves_whoever_repeats_an_acquire_in_doubt) {
  hold({kJob}, 30s);
  const Silent silent(session_of(kJob));
  for (int i = 0; i < 2; ++i) {
    const auto reply = ask(*store, acquire(1, kJob), in(3s));
    ASSERT_FALSE(reply) << to_string(reply->outcome);
    EXPECT_TRUE(reply.error().in_doubt);
  }
}

TEST_F(PostgresAdvisorySilence, in_a_batch_leaves_it_in_doubt_and_what_came_too_late_unsent) {
  const std::vector<std::string> keys{"DEFAULT:a", "DEFAULT:b", "DEFAULT:c"};
  const std::string held = "DEFAULT:held";
  const Millis ttl = 120s;  // a session may be silent for longer than the batch has
  ASSERT_EQ(ask(*store, with_ttl(acquire(9, held), ttl)).outcome, Outcome::granted);
  hold(keys, ttl);
  const pid_t second = session_of("DEFAULT:b");
  std::vector<Request> batch;
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(ask(*store, request(Verb::release, i + 1, keys[i])).outcome, Outcome::done);
    // On the same sessions, in this order.
    batch.push_back(noting(with_ttl(acquire(i + 11, keys[i]), ttl), 7));
  }
  batch.push_back(noting(request(Verb::renew, 9, held), 7));
  const Silent silent(second);
  const auto replies = store->apply(batch, in(6s));
  ASSERT_FALSE(replies) << to_string(replies->at(1).outcome);
  EXPECT_TRUE(replies.error().in_doubt);
  silent.go_on();
  EXPECT_TRUE(poll_until([&] { return ordinal_of("DEFAULT:b") == "7"; })) << "it was sent";
  EXPECT_EQ(ordinal_of("DEFAULT:c"), "7") << "it was sent before anybody was waited for";
  EXPECT_EQ(ordinal_of(held), "") << "it came too late to be sent";
}

TEST_F(PostgresAdvisorySilence, leaves_unsent_what_could_take_effect_after_the_apply_limit) {
  const auto hasty = database.store("?baton_apply_timeout=5s");  // and sends nothing after two
  const Millis ttl = 20s;  // so a session may be silent for longer than that
  const std::vector<std::string> keys{"DEFAULT:a", "DEFAULT:b"};
  ASSERT_EQ(ask(*hasty, with_ttl(acquire(9, "DEFAULT:held"), ttl)).outcome, Outcome::granted);
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(ask(*hasty, acquire(i + 1, keys[i])).outcome, Outcome::granted);
  }
  const pid_t first = session_of("DEFAULT:a");
  std::vector<Request> batch;
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(ask(*hasty, request(Verb::release, i + 1, keys[i])).outcome, Outcome::done);
    batch.push_back(noting(with_ttl(acquire(i + 11, keys[i]), ttl), 7));
  }
  batch.push_back(noting(request(Verb::renew, 9, "DEFAULT:held"), 7));
  const Silent silent(first);
  const auto replies = hasty->apply(batch, in(20s));
  ASSERT_FALSE(replies) << to_string(replies->at(0).outcome);
  EXPECT_TRUE(replies.error().in_doubt);
  EXPECT_EQ(ordinal_of("DEFAULT:b"), "7") << "it was sent before anybody was waited for";
  EXPECT_EQ(ordinal_of("DEFAULT:held"), "");
}

TEST_F(PostgresAdvisorySilence, is_not_waited_for_after_the_apply_limit_whatever_the_deadline) {
  const auto hasty = database.store("?baton_apply_timeout=5s");
  ASSERT_EQ(ask(*hasty, acquire(1, kJob)).outcome, Outcome::granted);
  const Silent silent(session_of(kJob));
  const auto before = BootClock::now();
  EXPECT_FALSE(ask(*hasty, noting(request(Verb::renew, 1, kJob), 7), in(60s)));
  EXPECT_LT(BootClock::now() - before, 30s);
}

// postgres-advisory: through the proxy, and straight.
class PostgresAdvisoryCut : public PostgresAdvisoryFault {
 protected:
  FaultProxy proxy{server.port()};

  [[nodiscard]] std::unique_ptr<LockStore> store_behind_the_proxy(
      const std::string& apply_timeout = "5s") const {
    std::string url = advisory(database.url());
    const std::string port = ":" + std::to_string(server.port());
    url.replace(url.find(port), port.size(), ":" + std::to_string(proxy.port()));
    return open_postgres_advisory_store(url + "?baton_apply_timeout=" + apply_timeout, soon())
        .value();
  }
};

TEST_F(PostgresAdvisoryCut, a_holder_that_is_cut_off_is_freed_within_its_ttl) {
  constexpr Millis kTtl = 12s;
  const auto cut_off = store_behind_the_proxy();
  const auto other = database.store();
  const auto sent = BootClock::now();
  ASSERT_EQ(ask(*cut_off, with_ttl(acquire(1, kJob), kTtl)).outcome, Outcome::granted);
  // Just before its next heartbeat: that much of its TTL is over, and is left to a slow machine.
  std::this_thread::sleep_for(kTtl / 3);
  proxy.cut();
  const auto cut = BootClock::now();
  Request queued = acquire(2, kJob, 60s);
  ASSERT_EQ(ask(*other, queued).outcome, Outcome::queued);
  const auto reply = ask(*cut_off, request(Verb::renew, 1, kJob), in(500ms));
  EXPECT_TRUE(!reply || reply->outcome == Outcome::busy || reply->outcome == Outcome::lost);
  ASSERT_TRUE(poll_until(
      [&] { return ask(*other, request(Verb::claim, 2, kJob)).outcome == Outcome::granted; }, 60s,
      10ms));
  const auto freed = BootClock::now();
  EXPECT_GE(freed - sent, kTtl) << "the first holder still trusted it";
  EXPECT_LE(freed - cut, kTtl);
  proxy.heal();
  EXPECT_TRUE(poll_until([&] {
    const auto renewed = ask(*cut_off, request(Verb::renew, 1, kJob), in(500ms));
    return renewed && renewed->outcome == Outcome::lost;
  }));
  EXPECT_EQ(look(*other, kJob).holders.at(0).grant, grant(2));
}

TEST_F(PostgresAdvisoryCut, waiters_that_are_cut_off_delay_the_next_by_less_than_a_ttl_each) {
  constexpr Millis kTtl = 5s;
  const auto cut_off = store_behind_the_proxy();
  const auto other = database.store();
  ASSERT_EQ(ask(*cut_off, with_ttl(acquire(1, kJob), kTtl)).outcome, Outcome::granted);
  for (std::uint64_t i = 2; i <= 3; ++i) {
    Request waiter = with_ttl(acquire(i, kJob, 60s), kTtl);
    waiter.claim_within = kTtl / 5;
    ASSERT_EQ(ask(*cut_off, waiter).outcome, Outcome::queued);
    ASSERT_TRUE(poll_until([&] { return look(*other, kJob).waiting == i - 1; }));
  }
  ASSERT_EQ(ask(*other, acquire(4, kJob, 60s)).outcome, Outcome::queued);
  ASSERT_TRUE(poll_until([&] { return look(*other, kJob).waiting == 3; }));
  proxy.cut();
  const auto cut = BootClock::now();
  ASSERT_TRUE(poll_until(
      [&] { return ask(*other, request(Verb::claim, 4, kJob)).outcome == Outcome::granted; }, 60s,
      10ms));
  // That they cost only a hand-off each leaves the rest to a slow machine.
  EXPECT_LE(BootClock::now() - cut, kTtl * (1 + 2));
}

TEST_F(PostgresAdvisoryCut, a_gap_that_is_shorter_than_the_ttl_costs_nothing) {
  const auto store = store_behind_the_proxy("1s");  // which gives up on an answer after that
  ASSERT_TRUE(poll_until([&] {
    const auto reply = ask(*store, with_ttl(acquire(1, kJob), 60s), soon());
    return reply && reply->outcome == Outcome::granted;
  }));
  proxy.cut();
  const auto cut = BootClock::now();
  while (BootClock::now() - cut < 4s) {
    const auto reply = ask(*store, request(Verb::renew, 1, kJob), in(300ms));
    ASSERT_TRUE(!reply || reply->outcome == Outcome::busy) << reply->message;
  }
  proxy.heal();
  EXPECT_TRUE(poll_until([&] {
    const auto reply = ask(*store, request(Verb::renew, 1, kJob), in(2s));
    return reply && reply->outcome == Outcome::granted;
  }));
}

TEST_F(PostgresAdvisoryCut, a_connection_that_is_reset_is_a_lock_that_is_lost) {
  const auto store = store_behind_the_proxy();
  Bell bell;
  const auto watch = store->watch("process-1", bell);
  ASSERT_EQ(ask(*store, acquire(1, kJob)).outcome, Outcome::granted);
  proxy.reset();
  EXPECT_TRUE(bell.rings());
  EXPECT_EQ(ask(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::lost);
  EXPECT_TRUE(poll_until([&] {
    const auto reply = ask(*store, acquire(2, kJob), in(5s));
    return reply && reply->outcome == Outcome::granted;
  })) << "and another one is another session";
}

// What a note says whose writer got no answer, and that it is not told `lost` when it asks again.
class PostgresAdvisoryDoubt : public PostgresAdvisoryCut {
 protected:
  static constexpr const char* kText = "the last words of a holder";

  static Request noting(Verb verb) {
    Request noting = request(verb, 1, kJob);
    noting.change = {.ordinal = 7, .text = kText};
    return noting;
  }
  static void expect_in_doubt(const Result<Reply>& reply) {
    ASSERT_FALSE(reply) << to_string(reply->outcome) << ": " << reply->message;
    EXPECT_TRUE(reply.error().in_doubt) << reply.error().message;
  }
  void expect_written() { EXPECT_EQ(look(*database.store(), kJob).note.text, kText); }
};

TEST_F(PostgresAdvisoryDoubt, a_release_that_was_carried_out_is_never_lost) {
  const auto store = store_behind_the_proxy();
  ASSERT_EQ(ask(*store, acquire(1, kJob)).outcome, Outcome::granted);
  proxy.swallow_answer_to(kText);
  expect_in_doubt(ask(*store, noting(Verb::release), soon()));
  ASSERT_EQ(proxy.swallowed(), 1);
  expect_written();
  expect_in_doubt(ask(*store, noting(Verb::release), soon()));
  EXPECT_EQ(ask(*store, request(Verb::release, 1, kJob)).outcome, Outcome::lost)
      << "this one has nothing to say that could have been written";
}

TEST_F(PostgresAdvisoryDoubt, a_renewal_whose_note_was_written_is_never_lost) {
  const auto store = store_behind_the_proxy();
  ASSERT_EQ(ask(*store, acquire(1, kJob)).outcome, Outcome::granted);
  proxy.swallow_answer_to(kText);
  expect_in_doubt(ask(*store, noting(Verb::renew), soon()));
  ASSERT_EQ(proxy.swallowed(), 1);
  expect_written();
  expect_in_doubt(ask(*store, noting(Verb::renew), soon()));
  EXPECT_EQ(ask(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::lost);
}

TEST_F(PostgresAdvisoryDoubt, an_acquire_is_not_superseded_by_its_own_note) {
  const auto store = store_behind_the_proxy();
  Request first = noting(Verb::acquire);
  first.if_ordinal_below = 7;
  proxy.swallow_answer_to(kText);
  expect_in_doubt(ask(*store, first, soon()));
  ASSERT_EQ(proxy.swallowed(), 1);
  expect_written();
  Reply again;
  EXPECT_TRUE(poll_until([&] {
    again = ask(*store, first);
    return again.outcome != Outcome::busy;  // until the server has noticed the end of its session
  }));
  EXPECT_EQ(again.outcome, Outcome::granted) << again.message;
  Request second = noting(Verb::acquire);
  second.grant = grant(2);
  second.if_ordinal_below = 7;
  EXPECT_EQ(ask(*store, second).outcome, Outcome::superseded);
}

TEST_F(PostgresAdvisoryCut, every_call_returns_by_its_deadline_whatever_the_network_does) {
  const auto store = store_behind_the_proxy();
  ASSERT_EQ(ask(*store, acquire(1, kJob)).outcome, Outcome::granted);
  ASSERT_EQ(ask(*store, acquire(2, kJob, 60s)).outcome, Outcome::queued);
  proxy.cut();
  for (const Verb verb : {Verb::acquire, Verb::claim, Verb::renew, Verb::get, Verb::break_,
                          Verb::cancel, Verb::release}) {
    const auto before = BootClock::now();
    const std::uint64_t number = verb == Verb::acquire ? 3 : verb == Verb::claim ? 2 : 1;
    (void)ask(*store, request(verb, number, kJob), in(300ms));
    EXPECT_LE(BootClock::now() - before, 300ms + 5s) << to_string(verb);
  }
  const auto before = BootClock::now();
  EXPECT_FALSE(store->find({}, in(300ms)));
  EXPECT_LE(BootClock::now() - before, 300ms + 5s);
}

TEST_F(PostgresAdvisoryCut, leases_are_kept_while_every_answer_comes_late_but_comes) {
  const std::vector<std::string> keys{"DEFAULT:a", "DEFAULT:b"};
  const auto store = store_behind_the_proxy("20s");
  std::vector<Request> renewals;
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(ask(*store, with_ttl(acquire(i + 1, keys[i]), 12s)).outcome, Outcome::granted);
    renewals.push_back(request(Verb::renew, i + 1, keys[i]));
  }
  proxy.delay(1500ms);  // there and back take longer than a sixth of the TTL
  std::vector<Reply> replies;
  EXPECT_TRUE(poll_until([&] {
    replies = store->apply(renewals, in(20s)).value();
    return replies[0].outcome != Outcome::busy && replies[1].outcome != Outcome::busy;
  }));
  for (const Reply& reply : replies) EXPECT_EQ(reply.outcome, Outcome::granted) << reply.message;
}

TEST_F(PostgresAdvisoryCut, a_slow_network_is_only_slow) {
  proxy.delay(50ms);
  const auto store = store_behind_the_proxy("20s");
  EXPECT_EQ(ask(*store, acquire(1, kJob)).outcome, Outcome::granted);
  EXPECT_EQ(ask(*store, request(Verb::renew, 1, kJob)).outcome, Outcome::granted);
  EXPECT_EQ(ask(*store, request(Verb::release, 1, kJob)).outcome, Outcome::done);
}

}  // namespace
}  // namespace baton::test
