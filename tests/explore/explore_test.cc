// The lease protocol, explored state by state on the production core. BATON_EXPLORE_STATES=n stops
// each world after so many states.

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

#include "explore/explorer.h"
#include "explore/fences.h"
#include "support/seed.h"

namespace baton::explore {
namespace {

class Exploration : public ::testing::TestWithParam<Setting> {};

TEST_P(Exploration, every_state_keeps_every_promise) {
  Setting setting = GetParam();
  if (const char* most = std::getenv("BATON_EXPLORE_STATES")) {
    setting.max_states = std::strtoull(most, nullptr, 10);
  }
  const Report report = explore(setting);
  std::cout << summary(report) << std::endl;
  RecordProperty("states", std::to_string(report.states));
  EXPECT_EQ(report.problem, "") << report.trace;
}

INSTANTIATE_TEST_SUITE_P(Worlds, Exploration, ::testing::ValuesIn(all_settings()),
                         [](const auto& of) { return "world_" + std::to_string(of.index); });

TEST(Exploration, long_walks_through_a_large_world_keep_every_promise) {
  const Report report = wander(large_world(), test::seed_or(1));
  std::cout << summary(report) << std::endl;
  EXPECT_GT(report.walks, 1000U) << "the walks never came to rest";
  EXPECT_EQ(report.problem, "") << report.trace;
}

TEST(Exploration, a_fence_refuses_whom_it_must_and_nobody_else) {
  const Report report = explore_fences();
  std::cout << summary(report) << std::endl;
  EXPECT_GT(report.states, 1000U);
  EXPECT_EQ(report.problem, "") << report.trace;
}

TEST(Exploration, a_clock_beyond_the_margin_is_noticed) {
  const Report report = explore(clocks_beyond_the_margin());
  std::cout << summary(report) << std::endl;
  EXPECT_NE(report.problem.find("exclusion"), std::string::npos) << report.problem;
}

}  // namespace
}  // namespace baton::explore
