#pragma once

// What the tests of a fleet ask about its starts.

#include <gtest/gtest.h>

#include "unit/schedule/fleet.h"

namespace baton::test {

inline Schedule rate(Millis period, Millis phase = Millis(0)) {
  return Schedule::fixed_rate(period, phase).value();
}
inline Schedule delay(Millis time) { return Schedule::fixed_delay(time).value(); }

// Every fire is done exactly once, in order, with none left out.
inline void expect_each_once(const std::vector<Start>& starts) {
  for (std::size_t i = 0; i < starts.size(); ++i) {
    ASSERT_EQ(starts[i].fire, static_cast<std::int64_t>(i) + 1);
    ASSERT_EQ(starts[i].attempt, 1);
    if (i > 0) {
      ASSERT_GT(starts[i].token, starts[i - 1].token);
    }
  }
}

// No run of a job begins while anybody could still believe to run it.
inline void expect_no_overlap(const std::vector<Start>& starts) {
  std::map<std::string, std::int64_t> free_at;
  for (const Start& start : starts) {
    ASSERT_GE(start.at, free_at[start.job]) << start.job << " fire " << start.fire;
    free_at[start.job] = start.free_at == INT64_MAX ? start.at : start.free_at;
  }
}

inline std::map<std::string, int> by_node(const std::vector<Start>& starts, std::size_t from = 0,
                                          std::size_t count = SIZE_MAX) {
  std::map<std::string, int> shares;
  for (std::size_t i = from; i < starts.size() && i - from < count; ++i) ++shares[starts[i].node];
  return shares;
}

}  // namespace baton::test
