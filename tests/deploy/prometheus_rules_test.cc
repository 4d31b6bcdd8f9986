// The alert rules: that they are rules, that each is shown to fire and not to, and that none of the
// observer design's alerts is missing.

#include <map>
#include <set>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "support/process.h"

namespace baton::test {
namespace {

const std::string kFolder = BATON_DEPLOY "/prometheus/";

YAML::Node load(const std::string& file) { return YAML::LoadFile(kFolder + file); }

// Severity by alert.
std::map<std::string, std::string> alerts_in(const std::string& file) {
  std::map<std::string, std::string> alerts;
  for (const auto& group : load(file)["groups"]) {
    for (const auto& rule : group["rules"]) {
      if (!rule["alert"]) continue;
      alerts[rule["alert"].as<std::string>()] = rule["labels"]["severity"].as<std::string>();
    }
  }
  return alerts;
}

class RulesOf : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string rules() { return GetParam() + ".rules.yml"; }
  [[nodiscard]] static std::string cases() { return "tests/" + GetParam() + ".test.yml"; }
};

TEST_P(RulesOf, this_group_can_be_read_and_behave_as_their_cases_say) {
  const auto checked = run({.argv = {"promtool", "check", "rules", kFolder + rules()}});
  EXPECT_TRUE(checked.status.success()) << checked.out << checked.err;
  const auto tested = run({.argv = {"promtool", "test", "rules", kFolder + cases()}});
  EXPECT_TRUE(tested.status.success()) << tested.out << tested.err;
}

TEST_P(RulesOf, this_group_have_a_case_that_fires_and_one_that_does_not) {
  std::set<std::string> fires;
  std::set<std::string> quiet;
  for (const auto& test : load(cases())["tests"]) {
    for (const auto& one : test["alert_rule_test"]) {
      (one["exp_alerts"].size() > 0 ? fires : quiet).insert(one["alertname"].as<std::string>());
    }
  }
  const auto alerts = alerts_in(rules());
  EXPECT_FALSE(alerts.empty());
  for (const auto& [alert, severity] : alerts) {
    EXPECT_TRUE(fires.contains(alert)) << alert;
    EXPECT_TRUE(quiet.contains(alert)) << alert;
  }
}

TEST_P(RulesOf, this_group_say_how_bad_it_is_and_what_to_do) {
  for (const auto& group : load(rules())["groups"]) {
    for (const auto& rule : group["rules"]) {
      if (!rule["alert"]) continue;
      const auto name = rule["alert"].as<std::string>();
      EXPECT_TRUE(rule["annotations"]["summary"]) << name;
      EXPECT_TRUE(rule["annotations"]["description"]) << name;
      const auto severity = rule["labels"]["severity"].as<std::string>();
      EXPECT_TRUE(severity == "critical" || severity == "warning" || severity == "info") << name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(prometheus, RulesOf,
                         ::testing::Values("observers", "jobs", "locks", "events", "documents"),
                         [](const auto& group) { return group.param; });

TEST(PrometheusConfig, the_example_is_one_that_prometheus_takes) {
  const auto checked = run({.argv = {"promtool", "check", "config", kFolder + "prometheus.yml"}});
  EXPECT_TRUE(checked.status.success()) << checked.out << checked.err;
}

// Section 5 of the observer design, and the targets of the other two, row by row.
struct Row {
  const char* name;  // of the test
  const char* file;
  const char* alert;
  const char* severity;
};

class AlertRow : public ::testing::TestWithParam<Row> {};

TEST_P(AlertRow, is_a_rule) {
  const auto alerts = alerts_in(GetParam().file);
  ASSERT_TRUE(alerts.contains(GetParam().alert));
  EXPECT_EQ(alerts.at(GetParam().alert), GetParam().severity);
}

constexpr const char* kObservers = "observers.rules.yml";
constexpr const char* kLocks = "locks.rules.yml";

INSTANTIATE_TEST_SUITE_P(
    section_5, AlertRow,
    ::testing::Values(
        Row{"all_nodes_failing_to_acquire_any_locks_for_5_minutes", kObservers,
            "ObserverLocksNotAcquired", "critical"},
        Row{"zero_polling_activity_for_any_type_for_10_minutes", kObservers,
            "ObserverTypeNotPolled", "critical"},
        Row{"hold_time_exceeds_ttl_for_3_consecutive_cycles", kObservers, "ObserverLockHeldPastTtl",
            "critical"},
        Row{"failure_rate_above_80_percent_for_a_type_for_30_minutes", kObservers,
            "ObserverLockFailureRateHigh", "warning"},
        Row{"only_one_node_acquiring_locks_for_30_minutes", kObservers, "ObserverOnlyOneNodeActive",
            "warning"},
        Row{"polling_duration_increases_by_20_percent_over_1_hour", kObservers,
            "ObserverPollingSlower", "warning"},
        Row{"occasional_lock_acquisition_failures", kObservers, "ObserverLockMissed", "info"},
        Row{"lock_release_errors", kLocks, "BatonLockReleaseFailed", "info"},
        Row{"lock_distribution_skewed_short_term", kObservers, "ObserverLoadSkewed", "info"},
        Row{"health_dashboard_a_type_has_no_successful_polls_for_5_minutes", kObservers,
            "ObserverTypeHasNoSuccessfulPolls", "warning"},
        Row{"lock_success_rate_above_99_9_percent", kLocks, "BatonLockSuccessRateLow", "warning"},
        Row{"lock_contention_rate_below_5_percent", kLocks, "BatonLockContentionHigh", "warning"},
        Row{"lock_acquisition_p95_below_20_ms", kLocks, "BatonLockAcquisitionSlow", "warning"}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace baton::test
