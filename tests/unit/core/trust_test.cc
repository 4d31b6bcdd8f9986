#include "core/trust.h"

#include <gtest/gtest.h>

namespace baton::core {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr Instant kSent{hours(5)};

TEST(Trust, ends_a_margin_before_the_ttl_counted_from_sending) {
  EXPECT_EQ(trusted_until(kSent, seconds(30)), kSent + seconds(27));
  EXPECT_EQ(trusted_until(kSent, hours(24)), kSent + hours(24) - std::chrono::minutes(144));
}

TEST(Trust, the_margin_is_a_tenth_and_at_least_a_quarter_second) {
  EXPECT_EQ(margin(Millis(500)), Millis(250));
  EXPECT_EQ(margin(Millis(2500)), Millis(250));
  EXPECT_EQ(margin(Millis(2600)), Millis(260));
  EXPECT_EQ(margin(seconds(60)), seconds(6));
}

TEST(Trust, a_ttl_that_the_margin_eats_is_never_trusted) {
  EXPECT_LE(trusted_until(kSent, Millis(250)), kSent);
  EXPECT_LE(trusted_until(kSent, Millis(1)), kSent);
}

TEST(Trust, two_renewals_may_fail_before_it_ends) {
  for (const Millis ttl : {Millis(2'000), Millis(10'000), Millis(60'000), Millis(86'400'000)}) {
    EXPECT_LT(kSent + 2 * renew_after(ttl), trusted_until(kSent, ttl)) << ttl.count();
  }
}

TEST(Trust, a_dead_waiter_delays_the_next_by_less_than_a_ttl) {
  for (const Millis ttl : {Millis(500), Millis(2'000), Millis(30'000), Millis(86'400'000)}) {
    EXPECT_LT(queue_ttl_for(ttl) + claim_within_for(ttl), ttl) << ttl.count();
    EXPECT_GT(queue_ttl_for(ttl), Millis(0));
    EXPECT_GT(claim_within_for(ttl), Millis(0));
  }
}

}  // namespace
}  // namespace baton::core
