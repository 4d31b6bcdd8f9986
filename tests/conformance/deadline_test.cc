// Every call and destructor returns by its own deadline, also when the store hangs and others, who
// have more time, wait for it too.

#include <gtest/gtest.h>

#include <future>
#include <optional>

#include "conformance/replicas.h"

namespace baton::test {
namespace {

class Deadlines : public Replicas {
 protected:
  Deadlines() : Replicas(fresh_store) {}

  // Calls it while the store hangs and a request with much time is on its way. Gives how long it
  // took on the test's clock.
  template <typename Call>
  core::StoreTime took(Replica& asking, Call call) {
    asking.line->set(Line::hangs);
    const auto calls = asking.line->calls();
    auto other = std::async(std::launch::async, [&] {
      return asking.locks.get(LockName{.subject = "other"}, 600s).has_value();
    });
    EXPECT_TRUE(poll_until([&] { return asking.line->calls() > calls; }));
    const auto before = time->now();
    auto called = std::async(std::launch::async, call);
    EXPECT_TRUE(eventually([&] { return is_there(called); }, 20ms));
    const auto time_taken = time->now() - before;
    EXPECT_FALSE(is_there(other)) << "the store answered";
    asking.line->set(Line::good);
    EXPECT_TRUE(arrives(other));
    EXPECT_TRUE(other.get());
    return time_taken;
  }
  // The clock of the test runs faster than this machine, and the other has much more time.
  static constexpr Millis kSlack{60'000};
};

TEST_F(Deadlines, a_release_returns_by_its_timeout) {
  auto a = replica("a");
  auto b = replica("b");
  auto lease = a.locks.acquire(kName, {.ttl = 600s});
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_LT(took(a,
                 [&] {
                   const auto released = lease->release({.timeout = 500ms});
                   EXPECT_FALSE(released);
                   if (released) return;
                   EXPECT_EQ(released.error().code, Code::unavailable);
                   EXPECT_TRUE(released.error().in_doubt);
                 }),
            500ms + kSlack);
  expect_free_before(500s, b.locks);
}

TEST_F(Deadlines, a_lease_is_destroyed_within_two_seconds) {
  auto a = replica("a");
  auto b = replica("b");
  std::optional<Lease> lease = a.locks.acquire(kName, {.ttl = 600s}).value();
  EXPECT_LT(took(a, [&] { lease.reset(); }), 2s + kSlack);
  expect_free_before(500s, b.locks);
}

TEST_F(Deadlines, calls_of_all_kinds_return_by_their_timeouts) {
  auto a = replica("a");
  auto lease = a.locks.acquire(kName, {.ttl = 600s});
  ASSERT_TRUE(lease) << lease.error().message;
  const Millis one_request = store->capabilities().apply_limit + 500ms;
  if (store->capabilities().notes) {
    EXPECT_LT(took(a, [&] { EXPECT_FALSE(lease->set_note({.text = "x"}, 300ms)); }),
              300ms + kSlack);
  }
  EXPECT_LT(took(a, [&] { EXPECT_FALSE(a.locks.get(kName, 300ms)); }), 300ms + kSlack);
  EXPECT_LT(took(a, [&] { EXPECT_FALSE(a.locks.find({}, 300ms)); }), 300ms + kSlack);
  EXPECT_LT(took(a, [&] { EXPECT_FALSE(a.locks.break_lock(kName, {.reason = "stuck"})); }),
            one_request + kSlack);
  EXPECT_LT(took(a, [&] { EXPECT_FALSE(a.locks.try_acquire({.subject = "x"}, kShort)); }),
            one_request + kSlack);
  EXPECT_LT(took(a, [&] { EXPECT_FALSE(a.locks.acquire({.subject = "y"}, {.wait = 8s})); }),
            8s + kSlack);
  if (store->capabilities().convert) {
    EXPECT_LT(took(a, [&] { EXPECT_FALSE(lease->convert(Mode::S, 1s)); }),
              1s + one_request + kSlack);
  }
}

TEST_F(Deadlines, a_client_is_destroyed_within_seconds_and_the_rest_ends_in_the_background) {
  const auto line = std::make_shared<FlakyStore>(store, clock);
  std::optional<LockClient> locks = LockClient::make(line, {.owner = "a", .clock = &clock}).value();
  std::optional<Lease> lease = locks->acquire(kName, {.ttl = 600s}).value();
  line->set(Line::hangs);
  const auto calls = line->calls();
  lease->release_async();
  ASSERT_TRUE(poll_until([&] { return line->calls() > calls; }));
  const auto before = time->now();
  auto gone = std::async(std::launch::async, [&] {
    lease.reset();
    locks.reset();
  });
  EXPECT_TRUE(arrives(gone));
  EXPECT_LT(time->now() - before, store->capabilities().apply_limit) << "it waited for an answer";
  line->set(Line::good);
  auto b = replica("b");
  expect_free_before(500s, b.locks);
}

}  // namespace
}  // namespace baton::test
