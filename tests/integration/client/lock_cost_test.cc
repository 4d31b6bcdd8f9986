// Section 8 of the observer design: what a lock may cost a poll. Others use the processors
// while this runs, which can only make a measurement worse; so each is taken again until it is good
// enough, and fails if it never is. How long things take on a quiet machine, and on the other
// stores, is measured by `./dev bench schedule`.

#include <algorithm>

#include <gtest/gtest.h>

#include "baton/locks.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Times = std::vector<Clock::duration>;

class LockCost : public ::testing::Test {
 protected:
  struct Cost {
    Clock::duration acquire;
    Clock::duration release;
  };
  Cost lock_once() {
    const auto asked = Clock::now();
    auto lease = locks_.try_acquire(
        {.subject = "job", .predicate = "running", .resources = {"order-observer-poll"}});
    const auto held = Clock::now();
    EXPECT_TRUE(lease) << lease.error().message;
    const auto ended = Clock::now();
    EXPECT_TRUE(lease->release());
    return {held - asked, Clock::now() - ended};
  }

  static Clock::duration median(Times times) {
    std::nth_element(times.begin(), times.begin() + static_cast<long>(times.size() / 2),
                     times.end());
    return times[times.size() / 2];
  }

  // How long a disk takes to keep what it was given is not what a lock costs here.
  TempDir dir_ = TempDir::in_memory("baton-cost");
  LockClient locks_ = open("sqlite:" + (dir_ / "locks.db").string()).value();
};

TEST_F(LockCost, the_acquisition_latency_is_below_100_ms_per_lock) {
  EXPECT_TRUE(poll_until([&] {
    Times times;
    for (int i = 0; i < 51; ++i) times.push_back(lock_once().acquire);
    return median(std::move(times)) < 100ms;
  }));
}

TEST_F(LockCost, a_poll_of_50_ms_takes_less_than_5_percent_longer_with_its_lock) {
  EXPECT_TRUE(poll_until([&] {
    const Cost cost = lock_once();
    return cost.acquire + cost.release < 50ms * 5 / 100;
  }));
}

}  // namespace
}  // namespace baton::test
