// What a client promises to who holds a lock: that its lease lasts, ends in time, and can be passed
// on.

#include <gtest/gtest.h>

#include <future>

#include "clients.h"
#include "core/trust.h"

namespace baton::test {
namespace {

// Lets a third of the ttl pass, and then no time at all until the lease is renewed. So however
// slow this machine is, it never falls behind.
void pass_a_renewal(ManualTime& time, const Lease& lease) {
  const Millis whole = lease.ttl() - core::margin(lease.ttl());
  time.advance(core::renew_after(lease.ttl()));
  ASSERT_TRUE(poll_until([&] { return lease.remaining() == whole; }))
      << "not renewed: " << lease.why_lost();
}

TEST_P(Client, a_held_lease_is_renewed_for_as_long_as_it_is_held) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, kShort);
  ASSERT_TRUE(lease);
  for (int i = 0; i < 15; ++i) ASSERT_NO_FATAL_FAILURE(pass_a_renewal(*time, *lease));
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
  for (int i = 0; i < 6; ++i) ASSERT_NO_FATAL_FAILURE(pass_a_renewal(*time, *lease));
}

TEST_P(Client, names_that_the_store_cannot_touch_for_a_while_cost_nobody_anything) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, {.ttl = 10s});
  ASSERT_TRUE(lease);
  a.line->set(Line::busy);
  EXPECT_EQ(lease->set_note({.text = "later"}).error().code, Code::busy);
  EXPECT_EQ(a.locks.get(kName).error().code, Code::busy);
  if (store->capabilities().transfer) {
    EXPECT_EQ(lease->release({.to = "b"}).error().code, Code::busy) << "nobody can look for b";
  }
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
  expect_free_before(5s, b.locks);
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

TEST_P(Client, breaking_a_lock_ends_one_that_is_released_and_only_stays_taken) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, {.ttl = 20s, .at_least_for = 1h});
  ASSERT_TRUE(lease);
  ASSERT_TRUE(lease->release());
  const auto busy = b.locks.try_acquire(kName, kShort);
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, Code::busy);
  EXPECT_NE(busy.error().message.find("released"), std::string::npos) << busy.error().message;
  const auto hit = b.locks.break_lock(kName, {.reason = "the night is over"});
  ASSERT_TRUE(hit) << hit.error().message;
  EXPECT_EQ(hit->size(), 1U);
  EXPECT_TRUE(b.locks.try_acquire(kName, kShort));
}

TEST_P(Client, a_release_that_did_not_arrive_is_repeated) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, {.ttl = 60s});
  ASSERT_TRUE(lease);
  a.line->set(Line::refuses);
  EXPECT_FALSE(lease->release());
  a.line->set(Line::good);
  expect_free_before(55s, b.locks);
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

}  // namespace
}  // namespace baton::test
