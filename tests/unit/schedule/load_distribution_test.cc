// Section 8 of the observer design: how 100 polling cycles of three types are shared by two nodes.

#include <gtest/gtest.h>

#include "unit/schedule/fleet.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kCycles = 100;

class LoadDistribution : public ::testing::Test {
 protected:
  // The tests only look at it.
  static void SetUpTestSuite() {
    fleet_ = std::make_unique<Fleet>();
    fleet_->noise = 8ms;
    fleet_->run_time = 50ms;
    for (const auto* type : {"order", "inventory", "wes"}) {
      fleet_->job(std::string(type) + "-observer-poll", Schedule::fixed_delay(1s).value(),
                  {.group = "observer"});
    }
    fleet_->join("node-a");
    fleet_->join("node-b");
    fleet_->run_for(110s);
  }
  static void TearDownTestSuite() { fleet_.reset(); }

  static std::vector<Start> cycles_of(const std::string& type) {
    auto starts = fleet_->starts_of(type + "-observer-poll");
    EXPECT_GE(starts.size(), kCycles);
    starts.resize(kCycles);
    return starts;
  }
  static std::map<std::string, int> locks_of(const std::string& type) {
    std::map<std::string, int> locks;
    for (const Start& start : cycles_of(type)) ++locks[start.node];
    return locks;
  }
  static void expect_about_50_each(const std::string& type) {
    auto locks = locks_of(type);
    EXPECT_NEAR(locks["node-a"], 50, 5);
    EXPECT_NEAR(locks["node-b"], 50, 5);
  }

  static std::unique_ptr<Fleet> fleet_;
};
std::unique_ptr<Fleet> LoadDistribution::fleet_;

TEST_F(LoadDistribution, order_observer_about_50_locks_to_each_node) {
  expect_about_50_each("order");
}

TEST_F(LoadDistribution, inventory_observer_about_50_locks_to_each_node) {
  expect_about_50_each("inventory");
}

TEST_F(LoadDistribution, wes_observer_about_50_locks_to_each_node) { expect_about_50_each("wes"); }

TEST_F(LoadDistribution, each_node_gets_at_least_1_lock_per_cycle_on_average) {
  std::map<std::string, std::size_t> locks;
  for (const auto* type : {"order", "inventory", "wes"}) {
    for (const auto& [node, count] : locks_of(type)) locks[node] += count;
  }
  EXPECT_GE(locks["node-a"], kCycles);
  EXPECT_GE(locks["node-b"], kCycles);
}

TEST_F(LoadDistribution, no_single_node_monopolizes_all_locks) {
  const auto order = cycles_of("order");
  const auto inventory = cycles_of("inventory");
  const auto wes = cycles_of("wes");
  std::size_t in_a_row = 0;
  std::size_t most = 0;
  std::string monopolist;
  for (std::size_t i = 0; i < kCycles; ++i) {
    const bool all = order[i].node == inventory[i].node && order[i].node == wes[i].node;
    in_a_row = all && order[i].node == monopolist ? in_a_row + 1 : (all ? 1 : 0);
    monopolist = all ? order[i].node : "";
    most = std::max(most, in_a_row);
  }
  EXPECT_LE(most, 2U) << "cycles in a row of which one node had everything";
}

}  // namespace
}  // namespace baton::test
