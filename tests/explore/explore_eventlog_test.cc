// How far a reader of an event log may read, explored state by state on the production class.

#include <gtest/gtest.h>

#include <iostream>

#include "explore/eventlog_world.h"

namespace baton::explore {
namespace {

class LogExploration : public ::testing::TestWithParam<LogSetting> {};

TEST_P(LogExploration, every_row_is_handled_once_and_in_one_order) {
  const Report report = explore_log(GetParam());
  std::cout << summary(report) << std::endl;
  RecordProperty("states", std::to_string(report.states));
  EXPECT_EQ(report.problem, "") << report.trace;
  EXPECT_TRUE(report.complete);
}

INSTANTIATE_TEST_SUITE_P(Worlds, LogExploration, ::testing::ValuesIn(log_settings()),
                         [](const auto& of) { return "world_" + std::to_string(of.index); });

}  // namespace
}  // namespace baton::explore
