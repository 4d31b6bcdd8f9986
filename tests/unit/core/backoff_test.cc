#include "core/backoff.h"

#include <gtest/gtest.h>

namespace baton::core {
namespace {

using Millis = std::chrono::milliseconds;

TEST(Backoff, doubles_up_to_its_most) {
  Backoff backoff(Millis(10), Millis(100));
  EXPECT_EQ(backoff.next(0), Millis(10));
  EXPECT_EQ(backoff.next(0), Millis(20));
  EXPECT_EQ(backoff.next(0), Millis(40));
  EXPECT_EQ(backoff.next(0), Millis(80));
  EXPECT_EQ(backoff.next(0), Millis(100));
  EXPECT_EQ(backoff.next(0), Millis(100));
}

TEST(Backoff, chance_takes_off_up_to_half_and_no_more) {
  for (std::uint64_t random = 0; random < 1000; ++random) {
    Backoff backoff(Millis(64), Millis(64));
    const Millis wait = backoff.next(random * 0x9E3779B97F4A7C15ULL);
    EXPECT_GE(wait, Millis(32));
    EXPECT_LE(wait, Millis(64));
  }
  EXPECT_EQ(Backoff(Millis(64), Millis(64)).next(32), Millis(32));
}

TEST(Backoff, starts_again_when_something_worked) {
  Backoff backoff(Millis(10), Millis(100));
  static_cast<void>(backoff.next(0));
  static_cast<void>(backoff.next(0));
  backoff.reset();
  EXPECT_EQ(backoff.next(0), Millis(10));
}

TEST(Backoff, never_gives_nothing_to_wait_for) {
  Backoff backoff(Millis(1), Millis(1'000'000));
  for (int i = 0; i < 64; ++i) EXPECT_GE(backoff.next(~std::uint64_t{0}), Millis(1));
}

}  // namespace
}  // namespace baton::core
