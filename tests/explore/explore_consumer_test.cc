// What a consumer does with an event, explored state by state on the production decisions.

#include <gtest/gtest.h>

#include <iostream>

#include "explore/consumer_world.h"

namespace baton::explore {
namespace {

class ConsumerExploration : public ::testing::TestWithParam<ConsumerSetting> {};

TEST_P(ConsumerExploration, has_exactly_one_effect_or_is_given_up_once) {
  const Report report = explore_consumer(GetParam());
  std::cout << summary(report) << std::endl;
  RecordProperty("states", std::to_string(report.states));
  EXPECT_EQ(report.problem, "") << report.trace;
  EXPECT_TRUE(report.complete);
}

INSTANTIATE_TEST_SUITE_P(Worlds, ConsumerExploration, ::testing::ValuesIn(consumer_settings()),
                         [](const auto& of) { return "world_" + std::to_string(of.index); });

}  // namespace
}  // namespace baton::explore
