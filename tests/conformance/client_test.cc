// The promises of the client, on whatever store the program was built for: once with wake-ups and
// once with every wake-up dropped, because neither safety nor progress may depend on them.

#include "baton/locks.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "core/trust.h"
#include "harness.h"
#include "manual_clock.h"
#include "support/flaky_store.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using Line = FlakyStore::Line;

class Client : public ::testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  ManualClock clock{time};
  std::shared_ptr<LockStore> store = factory().fresh(time);

  // A client whose last reference went in a callback is destroyed behind our back; it still needs
  // the clock and the store.
  void TearDown() override {
    EXPECT_TRUE(poll_until([&] { return store.use_count() == 1; }));
  }

  struct Replica {
    std::shared_ptr<FlakyStore> line;
    LockClient locks;
  };
  Replica replica(const std::string& owner) {
    auto line = std::make_shared<FlakyStore>(store);
    if (GetParam()) line->drop_wakeups();
    return {line, LockClient::make(line, {.owner = owner, .clock = &clock}).value()};
  }

  // Lets a third of the ttl pass, and then no time at all until the lease is renewed. So however
  // slow this machine is, it never falls behind.
  void pass_a_renewal(const Lease& lease) {
    const Millis whole = lease.ttl() - core::margin(lease.ttl());
    time->advance(core::renew_after(lease.ttl()));
    ASSERT_TRUE(poll_until([&] { return lease.remaining() == whole; }))
        << "not renewed: " << lease.why_lost();
  }

  // Lets time pass until it is so. Only liveness is tested with it, never a point in time.
  template <typename Condition>
  bool eventually(Condition condition) {
    return poll_until(
        [&] {
          if (condition()) return true;
          time->advance(5ms);
          return false;
        },
        60s, 1ms);
  }
  template <typename T>
  bool arrives(std::future<T>& future) {
    return eventually([&] { return future.wait_for(0s) == std::future_status::ready; });
  }
};

INSTANTIATE_TEST_SUITE_P(Wakeups, Client, ::testing::Values(false, true), [](const auto& wakeups) {
  return std::string(wakeups.param ? "dropped" : "delivered");
});

const LockName kName{.subject = "report", .resources = {"2026-11"}};
const AcquireOptions kShort{.ttl = 3s};
const AcquireOptions kPatient{.ttl = 3s, .wait = 60s};

TEST_P(Client, a_free_lock_is_granted_and_a_taken_one_is_busy_at_once) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(lease->valid());
  EXPECT_GT(lease->token(), 0U);
  EXPECT_EQ(lease->key(), "DEFAULT:report:2026-11");
  const auto busy = b.locks.try_acquire(kName, kShort);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, Code::busy);
  EXPECT_NE(busy.error().message.find("held by a"), std::string::npos) << busy.error().message;
  EXPECT_TRUE(lease->release());
  EXPECT_FALSE(lease->valid());
  EXPECT_TRUE(lease->lost().stop_requested());
  EXPECT_TRUE(b.locks.try_acquire(kName, kShort));
}

TEST_P(Client, a_lease_is_released_at_the_end_of_its_scope) {
  auto a = replica("a");
  {
    auto lease = a.locks.acquire(kName, kShort);
    ASSERT_TRUE(lease);
  }
  EXPECT_TRUE(a.locks.try_acquire(kName, kShort));
}

TEST_P(Client, two_threads_of_one_process_exclude_each_other) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(lease);
  EXPECT_EQ(a.locks.try_acquire(kName, kShort).error().code, Code::busy);
}

TEST_P(Client, a_waiter_gets_the_lock_when_it_is_released) {
  auto a = replica("a");
  auto b = replica("b");
  auto held = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(held);
  auto waiting = std::async(std::launch::async, [&] { return b.locks.acquire(kName, kPatient); });
  ASSERT_TRUE(eventually([&] { return a.locks.get(kName)->waiting == 1; }));
  const Token before = held->token();
  EXPECT_TRUE(held->release());
  ASSERT_TRUE(arrives(waiting));
  auto next = waiting.get();
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_GT(next->token(), before);
  EXPECT_TRUE(next->valid());
}

TEST_P(Client, a_waiter_gets_the_lock_of_a_holder_that_died) {
  auto a = replica("a");
  auto b = replica("b");
  auto held = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(held);
  a.line->set(Line::refuses);
  auto waiting = std::async(std::launch::async, [&] { return b.locks.acquire(kName, kPatient); });
  ASSERT_TRUE(arrives(waiting));
  EXPECT_TRUE(waiting.get());
  EXPECT_FALSE(held->valid());
  EXPECT_TRUE(held->lost().stop_requested());
}

TEST_P(Client, a_wait_ends_at_its_deadline_and_leaves_no_ticket) {
  auto a = replica("a");
  auto b = replica("b");
  auto held = a.locks.acquire(kName, {.ttl = 60s});
  auto waiting = std::async(std::launch::async,
                            [&] { return b.locks.acquire(kName, {.ttl = 3s, .wait = 2s}); });
  ASSERT_TRUE(arrives(waiting));
  const auto result = waiting.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::timed_out);
  EXPECT_NE(result.error().message.find("held by a"), std::string::npos) << result.error().message;
  EXPECT_TRUE(eventually([&] { return a.locks.get(kName)->waiting == 0; }));
}

TEST_P(Client, a_wait_can_be_stopped) {
  auto a = replica("a");
  auto b = replica("b");
  auto held = a.locks.acquire(kName, {.ttl = 60s});
  std::stop_source stop;
  AcquireOptions patient = kPatient;
  patient.stop = stop.get_token();
  auto waiting = std::async(std::launch::async, [&] { return b.locks.acquire(kName, patient); });
  ASSERT_TRUE(eventually([&] { return a.locks.get(kName)->waiting == 1; }));
  stop.request_stop();
  ASSERT_TRUE(arrives(waiting));
  EXPECT_EQ(waiting.get().error().code, Code::cancelled);
  EXPECT_TRUE(eventually([&] { return a.locks.get(kName)->waiting == 0; }));
}

TEST_P(Client, a_held_lease_is_renewed_for_as_long_as_it_is_held) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(lease);
  for (int i = 0; i < 15; ++i) ASSERT_NO_FATAL_FAILURE(pass_a_renewal(*lease));
}

TEST_P(Client, lost_fires_before_anyone_else_can_hold_the_lock) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(lease);
  const auto sent = time->now();
  a.line->set(Line::refuses);
  time->advance(kShort.ttl - core::margin(kShort.ttl));
  EXPECT_FALSE(lease->valid());
  // Time stands still here: the watchdog alone must notice, whatever the store does.
  EXPECT_TRUE(poll_until([&] { return lease->lost().stop_requested(); }));
  EXPECT_EQ(b.locks.try_acquire(kName, kShort).error().code, Code::busy);
  time->advance(kShort.ttl - (std::chrono::floor<Millis>(time->now() - sent)));
  EXPECT_TRUE(b.locks.try_acquire(kName, kShort));
}

TEST_P(Client, a_renewal_is_tried_again_until_the_store_is_back) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, {.ttl = 10s});
  ASSERT_TRUE(lease);
  a.line->set(Line::refuses);
  const auto calls = a.line->calls();
  time->advance(4s);
  ASSERT_TRUE(eventually([&] { return a.line->calls() > calls; }));
  ASSERT_LT(lease->remaining(), 6s);
  a.line->set(Line::good);
  // Slower than the machine's clock, so that a slow machine is not taken for a lost lease.
  const auto renewed = [&] {
    if (lease->remaining() > 6s) return true;
    time->advance(5ms);
    return false;
  };
  ASSERT_TRUE(poll_until(renewed, 60s, 10ms)) << lease->why_lost();
  for (int i = 0; i < 6; ++i) ASSERT_NO_FATAL_FAILURE(pass_a_renewal(*lease));
}

TEST_P(Client, names_that_the_store_cannot_touch_for_a_while_cost_nobody_anything) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, {.ttl = 10s});
  ASSERT_TRUE(lease);
  a.line->set(Line::busy);
  EXPECT_EQ(lease->set_note({.text = "later"}).error().code, Code::busy);
  EXPECT_TRUE(lease->valid());
  const auto calls = a.line->calls();
  time->advance(4s);
  ASSERT_TRUE(eventually([&] { return a.line->calls() > calls; })) << "no renewal was tried";
  EXPECT_TRUE(lease->valid());
  auto waiting = std::async(
      std::launch::async, [&] { return a.locks.acquire(LockName{.subject = "other"}, kPatient); });
  EXPECT_EQ(lease->release().error().code, Code::unavailable);
  a.line->set(Line::good);
  ASSERT_TRUE(arrives(waiting));
  EXPECT_TRUE(waiting.get());
  const auto before = time->now();
  EXPECT_TRUE(eventually([&] { return b.locks.try_acquire(kName, kShort).has_value(); }));
  EXPECT_LT(time->now() - before, 5s) << "only its TTL freed it";
}

TEST_P(Client, a_broken_lease_is_told_and_its_lock_is_free_after_it_lets_go) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, {.ttl = 20s});
  ASSERT_TRUE(lease);
  const auto hit = b.locks.break_lock(kName, {.reason = "it is stuck"});
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->size(), 1U);
  EXPECT_TRUE(eventually([&] { return lease->lost().stop_requested(); }));
  EXPECT_NE(lease->why_lost().find("it is stuck"), std::string::npos) << lease->why_lost();
  EXPECT_EQ(b.locks.try_acquire(kName, kShort).error().code, Code::busy);
  EXPECT_TRUE(lease->release());
  EXPECT_TRUE(b.locks.try_acquire(kName, kShort));
}

TEST_P(Client, an_acquire_in_doubt_is_undone) {
  auto a = replica("a");
  auto b = replica("b");
  a.line->set(Line::loses_replies);
  const auto doubtful = a.locks.try_acquire(kName, {.ttl = 60s});
  ASSERT_FALSE(doubtful);
  EXPECT_EQ(doubtful.error().code, Code::unavailable);
  EXPECT_TRUE(doubtful.error().in_doubt);
  a.line->set(Line::good);
  const auto before = time->now();
  EXPECT_TRUE(eventually([&] { return b.locks.try_acquire(kName, kShort).has_value(); }));
  EXPECT_LT(time->now() - before, 60s) << "only its TTL freed it";
}

TEST_P(Client, an_acquire_in_doubt_that_may_wait_gets_its_own_grant) {
  auto a = replica("a");
  a.line->set(Line::loses_replies);
  auto waiting = std::async(std::launch::async, [&] { return a.locks.acquire(kName, kPatient); });
  ASSERT_TRUE(eventually([&] { return a.line->calls() >= 3; }));
  a.line->set(Line::good);
  ASSERT_TRUE(arrives(waiting));
  auto lease = waiting.get();
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_TRUE(lease->valid());
}

TEST_P(Client, a_release_that_did_not_arrive_is_repeated) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, {.ttl = 60s});
  ASSERT_TRUE(lease);
  a.line->set(Line::refuses);
  EXPECT_FALSE(lease->release());
  a.line->set(Line::good);
  const auto before = time->now();
  EXPECT_TRUE(eventually([&] { return b.locks.try_acquire(kName, kShort).has_value(); }));
  EXPECT_LT(time->now() - before, 55s) << "only its TTL freed it";
}

TEST_P(Client, many_waiters_are_all_served_without_a_thread_each) {
  auto a = replica("a");
  auto b = replica("b");
  constexpr int kWaiters = 40;
  std::atomic<int> holding = 0;
  std::atomic<int> served = 0;
  std::atomic<bool> overlap = false;
  for (int i = 0; i < kWaiters; ++i) {
    auto& locks = i % 2 == 0 ? a.locks : b.locks;
    locks.acquire_async({kName}, {.ttl = 60s, .wait = 3600s}, [&](Result<Lease> lease) {
      if (!lease) return;
      if (++holding > 1) overlap = true;
      --holding;
      ++served;
    });
  }
  EXPECT_TRUE(eventually([&] { return served == kWaiters; })) << served;
  EXPECT_FALSE(overlap);
}

TEST_P(Client, a_note_passes_from_holder_to_holder) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(lease);
  EXPECT_TRUE(lease->set_note({.ordinal = 4, .text = "half way"}));
  EXPECT_TRUE(lease->release({.note = {.text = "done"}}));
  auto next = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->note(), (Note{4, "done"}));
  AcquireOptions late = kShort;
  late.if_ordinal_below = 4;
  EXPECT_EQ(a.locks.try_acquire(kName, late).error().code, Code::superseded);
}

TEST_P(Client, a_conversion_waits_for_the_other_readers) {
  auto a = replica("a");
  auto b = replica("b");
  const AcquireOptions shared{.mode = kShared, .ttl = 3s};
  auto first = a.locks.acquire(kName, shared);
  auto second = b.locks.acquire(kName, shared);
  ASSERT_TRUE(first && second);
  const Token before = second->token();
  if (!store->capabilities().convert) {
    EXPECT_EQ(first->convert(kExclusive).error().code, Code::unsupported);
    EXPECT_TRUE(first->valid());
    return;
  }
  EXPECT_EQ(first->convert(kExclusive).error().code, Code::busy);
  auto converting = std::async(std::launch::async, [&] { return first->convert(kExclusive, 60s); });
  ASSERT_TRUE(eventually([&] { return a.locks.get(kName)->waiting == 1; }));
  EXPECT_EQ(second->convert(kExclusive, 60s).error().code, Code::deadlock);
  EXPECT_TRUE(second->valid());
  EXPECT_TRUE(second->release());
  ASSERT_TRUE(arrives(converting));
  EXPECT_TRUE(converting.get());
  EXPECT_EQ(first->mode(), kExclusive);
  EXPECT_GT(first->token(), before);
}

TEST_P(Client, a_set_is_taken_and_released_whole) {
  auto a = replica("a");
  auto b = replica("b");
  const LockName other{.subject = "report", .resources = {"2026-12"}};
  auto both = a.locks.acquire_all({kName, other}, kShort);
  if (store->capabilities().max_set < 2) {
    EXPECT_EQ(both.error().code, Code::unsupported);
    return;
  }
  ASSERT_TRUE(both);
  EXPECT_EQ(both->tokens().size(), 2U);
  EXPECT_EQ(b.locks.try_acquire(other, kShort).error().code, Code::busy);
  EXPECT_TRUE(both->release());
  EXPECT_TRUE(b.locks.try_acquire(other, kShort));
}

TEST_P(Client, a_lock_is_handed_to_a_named_node) {
  auto a = replica("a");
  auto b = replica("b");
  auto c = replica("c");
  auto held = a.locks.acquire(kName, {.ttl = 60s});
  ASSERT_TRUE(held);
  const bool can = store->capabilities().transfer;
  EXPECT_EQ(held->release({.to = "c"}).error().code, can ? Code::denied : Code::unsupported);
  EXPECT_TRUE(held->valid());
  if (!can) return;
  auto first = std::async(std::launch::async, [&] { return b.locks.acquire(kName, kPatient); });
  ASSERT_TRUE(eventually([&] { return a.locks.get(kName)->waiting == 1; }));
  auto second = std::async(std::launch::async, [&] { return c.locks.acquire(kName, kPatient); });
  ASSERT_TRUE(eventually([&] { return a.locks.get(kName)->waiting == 2; }));
  EXPECT_TRUE(held->release({.to = "c"}));
  ASSERT_TRUE(arrives(second));
  EXPECT_TRUE(second.get());
  ASSERT_TRUE(arrives(first));
  EXPECT_TRUE(first.get());
}

TEST_P(Client, with_lock_gives_back_what_the_function_returns) {
  auto a = replica("a");
  const auto result = a.locks.with_lock(kName, kShort, [](Lease& lease) { return lease.token(); });
  ASSERT_TRUE(result);
  EXPECT_GT(*result, 0U);
  EXPECT_TRUE(a.locks.with_lock(kName, kShort, [](Lease&) {}));
}

TEST_P(Client, bad_requests_are_refused_before_the_store_is_asked) {
  auto a = replica("a");
  const auto calls = a.line->calls();
  EXPECT_EQ(a.locks.acquire(kName, {.ttl = 0s}).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.acquire(kName, {.ttl = -1s}).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.acquire(kName, {.ttl = 25h}).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.acquire(kName, {.wait = 25h}).error().code, Code::bad_request);
  EXPECT_EQ(a.locks.acquire(LockName{.subject = ""}, {}).error().code, Code::bad_name);
  EXPECT_EQ(a.locks.acquire(LockName{.subject = "a\n"}, {}).error().code, Code::bad_name);
  EXPECT_EQ(a.locks.acquire(LockName{.subject = std::string(300, 'x')}, {}).error().code,
            Code::bad_name);
  EXPECT_EQ(a.locks.acquire(LockName{.subject = "schema", .region = "BATON"}, {}).error().code,
            Code::bad_name);
  EXPECT_EQ(a.line->calls(), calls);
}

TEST_P(Client, a_client_of_another_schema_version_is_denied_and_a_new_one_is_not) {
  auto old = replica("old");
  Request request = acquire(900, std::string(core::kSchemaKey));
  request.change = {.ordinal = 1, .text = to_stored(Policy{.version = 1})};
  ASSERT_TRUE(store->apply({&request, 1}, soon()));
  EXPECT_EQ(old.locks.try_acquire(kName, kShort).error().code, Code::denied);
  auto current = replica("new");
  EXPECT_TRUE(current.locks.try_acquire(kName, kShort));
}

TEST_P(Client, the_last_reference_may_go_on_the_clients_own_thread) {
  std::promise<void> done;
  {
    auto locks = std::make_shared<LockClient>(
        LockClient::make(store, {.owner = "a", .clock = &clock}).value());
    auto& client = *locks;
    client.acquire_async({kName}, kShort, [&done, locks](Result<Lease> lease) mutable {
      EXPECT_TRUE(lease);
      locks.reset();
      done.set_value();
    });
  }
  auto finished = done.get_future();
  EXPECT_TRUE(arrives(finished));
}

}  // namespace
}  // namespace baton::test
