// Section 5 of the observer design lists these metrics.

#include "apps/warehouse/observer_metrics.h"

#include <gtest/gtest.h>

namespace baton::warehouse {
namespace {

using namespace std::chrono_literals;

class ObserverMetricsTest : public ::testing::Test {
 protected:
  [[nodiscard]] bool shows(const std::string& line) const {
    return ("\n" + metrics->text()).find("\nscheduler_observer_" + line + "\n") !=
           std::string::npos;
  }

  std::shared_ptr<observe::Metrics> metrics = std::make_shared<observe::Metrics>();
  ObserverMetrics scheduler{metrics, {.node = "node-a", .types = {"order", "inventory", "wes"}}};
};

TEST_F(ObserverMetricsTest, lock_acquired_total_by_type) {
  EXPECT_TRUE(shows("lock_acquired_total{type=\"order\"} 0"));
  EXPECT_TRUE(shows("lock_acquired_total{type=\"inventory\"} 0"));
  EXPECT_TRUE(shows("lock_acquired_total{type=\"wes\"} 0"));
  scheduler.acquired("order");
  scheduler.acquired("order");
  EXPECT_TRUE(shows("lock_acquired_total{type=\"order\"} 2"));
  EXPECT_TRUE(shows("lock_acquired_total{type=\"wes\"} 0"));
}

TEST_F(ObserverMetricsTest, lock_failed_total_by_type) {
  scheduler.failed("inventory");
  EXPECT_TRUE(shows("lock_failed_total{type=\"inventory\"} 1"));
  EXPECT_TRUE(shows("lock_failed_total{type=\"order\"} 0"));
}

TEST_F(ObserverMetricsTest, given_up_total_by_type) {
  EXPECT_TRUE(shows("given_up_total{type=\"order\"} 0"));
  scheduler.given_up("order");
  EXPECT_TRUE(shows("given_up_total{type=\"order\"} 1"));
  EXPECT_TRUE(shows("lock_failed_total{type=\"order\"} 0"));
}

TEST_F(ObserverMetricsTest, polling_duration_seconds_by_type_is_a_histogram) {
  scheduler.polled("wes", 40ms);
  scheduler.polled("wes", 70s);
  EXPECT_TRUE(shows("polling_duration_seconds_bucket{type=\"wes\",le=\"0.05\"} 1"));
  EXPECT_TRUE(shows("polling_duration_seconds_bucket{type=\"wes\",le=\"60\"} 1"));
  EXPECT_TRUE(shows("polling_duration_seconds_count{type=\"wes\"} 2"));
}

TEST_F(ObserverMetricsTest, lock_acquired_by_node) {
  scheduler.acquired("order");
  EXPECT_TRUE(shows("lock_acquired_by_node{node=\"node-a\",type=\"order\"} 1"));
  EXPECT_TRUE(shows("lock_acquired_by_node{node=\"node-a\",type=\"wes\"} 0"));
}

TEST_F(ObserverMetricsTest, cycle_duration_seconds_is_a_histogram) {
  scheduler.cycle(100ms, 2, 1);
  scheduler.cycle(70s, 1, 2);
  EXPECT_TRUE(shows("cycle_duration_seconds_bucket{le=\"60\"} 1"));
  EXPECT_TRUE(shows("cycle_duration_seconds_count 2"));
}

TEST_F(ObserverMetricsTest, cycle_locked_count_is_that_of_the_last_cycle) {
  scheduler.cycle(100ms, 2, 1);
  scheduler.cycle(100ms, 1, 2);
  EXPECT_TRUE(shows("cycle_locked_count 1"));
}

TEST_F(ObserverMetricsTest, cycle_skipped_count_is_that_of_the_last_cycle) {
  scheduler.cycle(100ms, 2, 1);
  scheduler.cycle(100ms, 1, 2);
  EXPECT_TRUE(shows("cycle_skipped_count 2"));
}

TEST_F(ObserverMetricsTest, polls_that_fail_or_outlast_the_ttl_are_counted_too) {
  scheduler.poll_failed("order", 1s);
  scheduler.polled("order", 61s);
  scheduler.polled("order", 61s, 120s);
  EXPECT_TRUE(shows("polling_failed_total{type=\"order\"} 1"));
  EXPECT_TRUE(shows("lock_overrun_total{type=\"order\"} 1"));
  EXPECT_TRUE(shows("polling_duration_seconds_count{type=\"order\"} 3"));
}

TEST_F(ObserverMetricsTest, types_beyond_the_bound_share_one_series) {
  for (int i = 0; i < 1000; ++i) scheduler.acquired("type" + std::to_string(i));
  EXPECT_TRUE(shows("lock_acquired_total{type=\"type0\"} 1"));
  EXPECT_EQ(metrics->text().find("type999"), std::string::npos);
  EXPECT_TRUE(shows("lock_acquired_total{type=\"other\"} 803"));
}

}  // namespace
}  // namespace baton::warehouse
