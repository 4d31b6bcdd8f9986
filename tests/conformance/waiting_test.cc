// What a client promises to who waits for a lock.

#include <gtest/gtest.h>

#include <atomic>
#include <future>

#include "clients.h"
#include "core/trust.h"

namespace baton::test {
namespace {

TEST_P(Client, a_waiter_gets_the_lock_when_it_is_released) {
  auto a = replica("a");
  auto b = replica("b");
  auto held = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(held);
  auto waiting = std::async(std::launch::async, [&] { return b.locks.acquire(kName, kPatient); });
  ASSERT_TRUE(eventually([&] { return how_many_wait(a, kName) == 1; }));
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
  EXPECT_TRUE(eventually([&] { return how_many_wait(a, kName) == 0; }));
}

TEST_P(Client, a_wait_can_be_stopped) {
  auto a = replica("a");
  auto b = replica("b");
  auto held = a.locks.acquire(kName, {.ttl = 60s});
  std::stop_source stop;
  AcquireOptions patient = kPatient;
  patient.stop = stop.get_token();
  auto waiting = std::async(std::launch::async, [&] { return b.locks.acquire(kName, patient); });
  ASSERT_TRUE(eventually([&] { return how_many_wait(a, kName) == 1; }));
  stop.request_stop();
  ASSERT_TRUE(arrives(waiting));
  EXPECT_EQ(waiting.get().error().code, Code::cancelled);
  EXPECT_TRUE(eventually([&] { return how_many_wait(a, kName) == 0; }));
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

TEST_P(Client, an_acquire_in_doubt_is_undone_if_its_wait_is_stopped) {
  auto a = replica("a");
  auto b = replica("b");
  a.line->set(Line::loses_replies);
  std::stop_source stop;
  AcquireOptions options{.ttl = 600s, .wait = 60s};
  options.stop = stop.get_token();
  auto waiting = std::async(std::launch::async, [&] { return a.locks.acquire(kName, options); });
  ASSERT_TRUE(poll_until([&] { return b.locks.get(kName)->holders.size() == 1; }));
  stop.request_stop();
  ASSERT_TRUE(arrives(waiting));
  EXPECT_EQ(waiting.get().error().code, Code::cancelled);
  a.line->set(Line::good);
  expect_free_before(500s, b.locks);
}

TEST_P(Client, an_acquire_in_doubt_is_undone_if_the_store_is_not_reached_any_more) {
  auto a = replica("a");
  auto b = replica("b");
  a.line->set(Line::loses_replies);
  auto waiting = std::async(std::launch::async,
                            [&] { return a.locks.acquire(kName, {.ttl = 600s, .wait = 20s}); });
  ASSERT_TRUE(poll_until([&] { return b.locks.get(kName)->holders.size() == 1; }));
  a.line->set(Line::refuses);
  const auto calls = a.line->calls();
  ASSERT_TRUE(arrives(waiting));
  EXPECT_FALSE(waiting.get());
  EXPECT_GT(a.line->calls(), calls) << "it asked again";
  a.line->set(Line::good);
  expect_free_before(500s, b.locks);
}

TEST_P(Client, who_may_not_wait_because_too_many_do_leaves_no_ticket) {
  auto a = replica("a");
  auto full = LockClient::make(store, {.owner = "b", .clock = &clock, .max_waiting = 0}).value();
  auto held = a.locks.acquire(kName, {.ttl = 600s});
  ASSERT_TRUE(held);
  const auto refused = full.acquire(kName, {.ttl = 600s, .wait = 60s});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unavailable) << refused.error().message;
  // Hardly any time passes, for a cancel that was put off: the ticket does not only go stale.
  const Instant before = clock.now();
  EXPECT_TRUE(poll_until([&] {
    time->advance(1ms);
    return how_many_wait(a, kName) == 0;
  }));
  EXPECT_LT(clock.now() - before, core::queue_ttl_for(600s));
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

TEST_P(Client, a_store_that_cannot_convert_says_so_and_the_lease_goes_on) {
  if (store->capabilities().convert) GTEST_SKIP() << "this store converts";
  auto a = replica("a");
  auto held = a.locks.acquire(kName, {.mode = kShared, .ttl = 3s});
  ASSERT_TRUE(held);
  EXPECT_EQ(held->convert(kExclusive).error().code, Code::unsupported);
  EXPECT_TRUE(held->valid());
}

TEST_P(Client, a_conversion_waits_for_the_other_readers) {
  if (!store->capabilities().convert) GTEST_SKIP() << "this store does not convert";
  auto a = replica("a");
  auto b = replica("b");
  const AcquireOptions shared{.mode = kShared, .ttl = 3s};
  auto first = a.locks.acquire(kName, shared);
  auto second = b.locks.acquire(kName, shared);
  ASSERT_TRUE(first && second);
  const Token before = second->token();
  EXPECT_EQ(first->convert(kExclusive).error().code, Code::busy);
  auto converting = std::async(std::launch::async, [&] { return first->convert(kExclusive, 60s); });
  ASSERT_TRUE(eventually([&] { return how_many_wait(a, kName) == 1; }));
  EXPECT_EQ(second->convert(kExclusive, 60s).error().code, Code::deadlock);
  EXPECT_TRUE(second->valid());
  EXPECT_TRUE(second->release());
  ASSERT_TRUE(arrives(converting));
  EXPECT_TRUE(converting.get());
  EXPECT_EQ(first->mode(), kExclusive);
  EXPECT_GT(first->token(), before);
}

TEST_P(Client, a_lock_is_not_handed_to_a_node_that_does_not_wait) {
  auto a = replica("a");
  auto held = a.locks.acquire(kName, {.ttl = 60s});
  ASSERT_TRUE(held);
  const bool can = store->capabilities().transfer;
  EXPECT_EQ(held->release({.to = "c"}).error().code, can ? Code::denied : Code::unsupported);
  EXPECT_TRUE(held->valid());
}

TEST_P(Client, a_lock_is_handed_to_a_named_node) {
  if (!store->capabilities().transfer) GTEST_SKIP() << "this store hands to no named node";
  auto a = replica("a");
  auto b = replica("b");
  auto c = replica("c");
  auto held = a.locks.acquire(kName, {.ttl = 60s});
  ASSERT_TRUE(held);
  EXPECT_EQ(held->release({.to = "c"}).error().code, Code::denied);
  EXPECT_TRUE(held->valid());
  auto first = std::async(std::launch::async, [&] { return b.locks.acquire(kName, kPatient); });
  ASSERT_TRUE(eventually([&] { return how_many_wait(a, kName) == 1; }));
  auto second = std::async(std::launch::async, [&] { return c.locks.acquire(kName, kPatient); });
  ASSERT_TRUE(eventually([&] { return how_many_wait(a, kName) == 2; }));
  EXPECT_TRUE(held->release({.to = "c"}));
  ASSERT_TRUE(arrives(second));
  EXPECT_TRUE(second.get());
  ASSERT_TRUE(arrives(first));
  EXPECT_TRUE(first.get());
}

}  // namespace
}  // namespace baton::test
