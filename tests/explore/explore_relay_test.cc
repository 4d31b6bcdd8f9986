// What a relay does with the events of a lane, explored state by state on the production class.

#include <gtest/gtest.h>

#include <iostream>

#include "explore/relay_world.h"
#include "explore/wakeup_world.h"

namespace baton::explore {
namespace {

class RelayExploration : public ::testing::TestWithParam<RelaySetting> {};

TEST_P(RelayExploration, loses_nothing_and_keeps_the_order_of_each_aggregate) {
  const Report report = explore_relay(GetParam());
  std::cout << summary(report) << std::endl;
  RecordProperty("states", std::to_string(report.states));
  EXPECT_EQ(report.problem, "") << report.trace;
  EXPECT_TRUE(report.complete);
}

INSTANTIATE_TEST_SUITE_P(Worlds, RelayExploration, ::testing::ValuesIn(relay_settings()),
                         [](const auto& of) { return "world_" + std::to_string(of.index); });

class WakeUpExploration : public ::testing::TestWithParam<WakeUpSetting> {};

TEST_P(WakeUpExploration, never_sleeps_on_a_committed_event) {
  const Report report = explore_wakeup(GetParam());
  std::cout << summary(report) << std::endl;
  EXPECT_EQ(report.problem, "") << report.trace;
  EXPECT_TRUE(report.complete);
}

INSTANTIATE_TEST_SUITE_P(Worlds, WakeUpExploration, ::testing::ValuesIn(wakeup_settings()),
                         [](const auto& of) { return "world_" + std::to_string(of.index); });

}  // namespace
}  // namespace baton::explore
