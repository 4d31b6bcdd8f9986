// How partitions are divided among members, explored state by state on the production plan.

#include <gtest/gtest.h>

#include <iostream>

#include "explore/partitions_world.h"

namespace baton::explore {
namespace {

class PartitionExploration : public ::testing::TestWithParam<PartitionSetting> {};

TEST_P(PartitionExploration, comes_to_rest_at_the_quotas_and_moves_no_more_than_it_must) {
  const Report report = explore_partitions(GetParam());
  std::cout << summary(report) << std::endl;
  RecordProperty("states", std::to_string(report.states));
  EXPECT_EQ(report.problem, "") << report.trace;
  EXPECT_TRUE(report.complete);
}

INSTANTIATE_TEST_SUITE_P(Worlds, PartitionExploration, ::testing::ValuesIn(partition_settings()),
                         [](const auto& of) { return "world_" + std::to_string(of.index); });

}  // namespace
}  // namespace baton::explore
