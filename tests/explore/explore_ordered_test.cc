// What an ordered consumer does with the events of an aggregate, explored state by state on the
// production decisions.

#include <gtest/gtest.h>

#include <iostream>

#include "explore/ordered_world.h"

namespace baton::explore {
namespace {

class OrderedExploration : public ::testing::TestWithParam<OrderedSetting> {};

TEST_P(OrderedExploration, handles_the_events_of_an_aggregate_in_their_order) {
  const Report report = explore_ordered(GetParam());
  std::cout << summary(report) << std::endl;
  RecordProperty("states", std::to_string(report.states));
  EXPECT_EQ(report.problem, "") << report.trace;
  EXPECT_TRUE(report.complete);
}

INSTANTIATE_TEST_SUITE_P(Worlds, OrderedExploration, ::testing::ValuesIn(ordered_settings()),
                         [](const auto& of) { return "world_" + std::to_string(of.index); });

}  // namespace
}  // namespace baton::explore
