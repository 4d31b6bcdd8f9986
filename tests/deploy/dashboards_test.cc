// The dashboards and rules against a real Prometheus that scrapes the warehouse and the document
// platform: every query returns data.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "deploy/demo_deployment.h"
#include "json/json.h"

namespace baton::test {
namespace {

using Json = nlohmann::json;

const std::string kGrafana = BATON_DEPLOY "/grafana/";
const std::vector<std::string> kRuleFiles = {
    BATON_DEPLOY "/prometheus/observers.rules.yml", BATON_DEPLOY "/prometheus/jobs.rules.yml",
    BATON_DEPLOY "/prometheus/locks.rules.yml", BATON_DEPLOY "/prometheus/events.rules.yml",
    BATON_DEPLOY "/prometheus/documents.rules.yml"};

Json dashboard(const std::string& name) {
  std::ifstream file(kGrafana + name + ".json");
  return Json::parse(file);
}

Json panels_of(const std::string& name) { return dashboard(name)["panels"]; }

std::vector<std::string> all_dashboards() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGrafana)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  }
  return names;
}

Json panel(const std::string& name, const std::string& title) {
  for (const Json& one : panels_of(name)) {
    if (one["title"] == title) return one;
  }
  return {};
}

// What Grafana puts in before it asks.
std::string asked(std::string expression) {
  const std::string variable = "$__rate_interval";
  for (auto at = expression.find(variable); at != std::string::npos;
       at = expression.find(variable)) {
    expression.replace(at, variable.size(), "30s");
  }
  return expression;
}

std::string expression_of(const Json& target) { return asked(target["expr"].get<std::string>()); }

std::string query_of(const std::string& name, const std::string& title, int which = 0) {
  return expression_of(panel(name, title)["targets"].at(which));
}

class Dashboards : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    demo = std::make_unique<DemoDeployment>(kRuleFiles);
    // What is to be seen of node-c has to be seen before it is killed.
    ASSERT_TRUE(
        shows(query_of("observer-health", "Polling success rate per observer type") + " < 1"));
    ASSERT_TRUE(
        shows(R"(sum(increase(scheduler_observer_lock_acquired_by_node{node="node-c"}[1h])) > 0)"));
    ASSERT_TRUE(demo->kill_node_c());
    ASSERT_TRUE(demo->pause_node_b_past_its_ttl());
  }
  static void TearDownTestSuite() { demo.reset(); }
  void SetUp() override { ASSERT_NE(demo, nullptr); }

  static Json ask(const std::string& expression) {
    const Json answer = Json::parse(demo->prometheus().query(expression));
    if (answer["status"] != "success") {
      ADD_FAILURE() << expression << ": " << answer.value("error", "");
      return Json::array();
    }
    return answer["data"]["result"];
  }
  static double number(const Json& sample) {
    return std::stod(sample["value"][1].get<std::string>());
  }

  // Some sample is a number.
  static bool has_data(const std::string& expression) {
    const Json samples = ask(expression);
    return std::any_of(samples.begin(), samples.end(),
                       [](const Json& sample) { return std::isfinite(number(sample)); });
  }
  // In time, unless the expression is none at all.
  static bool shows(const std::string& expression) {
    bool seen = false;
    (void)poll_until([&] { return (seen = has_data(expression)) || HasFailure(); }, 2 * patience,
                     std::chrono::milliseconds(100));
    return seen;
  }

  static std::unique_ptr<DemoDeployment> demo;
};
std::unique_ptr<DemoDeployment> Dashboards::demo;

TEST_F(Dashboards, every_query_of_every_panel_returns_data) {
  std::size_t queries = 0;
  for (const std::string& name : all_dashboards()) {
    for (const Json& one : panels_of(name)) {
      EXPECT_FALSE(one["targets"].empty()) << name << ": " << one["title"];
      for (const Json& target : one["targets"]) {
        EXPECT_TRUE(shows(expression_of(target)))
            << name << ": " << one["title"] << ": " << target["expr"];
        ++queries;
      }
    }
  }
  EXPECT_GE(queries, 40U);
}

TEST_F(Dashboards, every_recording_rule_returns_data_and_every_alert_can_be_evaluated) {
  std::size_t alerts = 0;
  for (const std::string& file : kRuleFiles) {
    for (const auto& group : YAML::LoadFile(file)["groups"]) {
      for (const auto& rule : group["rules"]) {
        if (rule["record"]) {
          EXPECT_TRUE(shows(rule["record"].as<std::string>())) << rule["record"];
          continue;
        }
        ++alerts;
        // Of an alert that does not fire there is nothing to see but what it looks at.
        const auto expression = rule["expr"].as<std::string>();
        (void)ask(expression);
        const std::regex name("(scheduler_observer|baton|documents)[_:][a-z0-9_:]+");
        for (std::sregex_iterator it(expression.begin(), expression.end(), name), end; it != end;
             ++it) {
          EXPECT_TRUE(shows(it->str())) << rule["alert"] << ": " << it->str();
        }
      }
    }
  }
  EXPECT_GE(alerts, 20U);
}

TEST_F(Dashboards, what_went_wrong_has_raised_its_alert_and_no_rule_is_in_trouble) {
  for (const std::string alert : {"ObserverLockMissed", "BatonLockLost", "BatonLeaseOverlap"}) {
    EXPECT_TRUE(shows("ALERTS{alertname=\"" + alert + "\",alertstate=\"firing\"}")) << alert;
  }
  const Json answer = Json::parse(demo->prometheus().get("/api/v1/rules"));
  std::size_t rules = 0;
  for (const Json& group : answer["data"]["groups"]) {
    for (const Json& rule : group["rules"]) {
      EXPECT_EQ(rule["health"], "ok") << rule["name"] << rule.value("lastError", "");
      ++rules;
    }
  }
  EXPECT_GE(rules, 30U);
}

TEST_F(Dashboards, the_load_distribution_is_seen_in_real_time_and_so_is_that_a_node_is_gone) {
  EXPECT_TRUE(shows(query_of("active-active", "Active nodes polling") + " == 3"));
  EXPECT_TRUE(shows(query_of("active-active", "Active nodes polling", 1) + " == 2"));
  EXPECT_TRUE(shows("count(" +
                    query_of("load-distribution", "Lock acquisitions by node and type, last hour") +
                    ") == 9"));
}

TEST_F(Dashboards, the_load_balance_score_is_one_of_0_to_100) {
  const auto query = query_of("active-active", "Load balance score, last hour");
  ASSERT_TRUE(shows(query));
  const Json score = ask(query);
  ASSERT_EQ(score.size(), 1U);
  EXPECT_GE(number(score[0]), 0);
  EXPECT_LE(number(score[0]), 100);
}

TEST(DashboardFiles, can_be_imported_beside_each_other) {
  std::set<std::string> uids;
  for (const std::string& name : all_dashboards()) {
    const Json one = dashboard(name);
    EXPECT_TRUE(uids.insert(one["uid"]).second) << name;
    EXPECT_FALSE(one["title"].get<std::string>().empty()) << name;
    std::set<int> ids;
    for (const Json& part : one["panels"]) {
      EXPECT_TRUE(ids.insert(part["id"].get<int>()).second) << name << ": " << part["title"];
      EXPECT_LE(part["gridPos"]["x"].get<int>() + part["gridPos"]["w"].get<int>(), 24);
      EXPECT_EQ(part["datasource"]["uid"], "${datasource}") << name << ": " << part["title"];
    }
  }
  EXPECT_EQ(uids.size(), 7U);
}

// Section 5 of the observer design, row by row.
struct Row {
  const char* name;  // of the test
  const char* dashboard;
  const char* panel;
  const char* type;
};

class DashboardRow : public ::testing::TestWithParam<Row> {};

TEST_P(DashboardRow, is_a_panel) {
  const Json found = panel(GetParam().dashboard, GetParam().panel);
  ASSERT_TRUE(found.is_object());
  EXPECT_EQ(found["type"], GetParam().type);
  EXPECT_FALSE(found["targets"].empty());
}

INSTANTIATE_TEST_SUITE_P(
    section_5, DashboardRow,
    ::testing::Values(
        Row{"lock_acquisitions_per_node_over_time", "load-distribution",
            "Lock acquisitions per node over time", "timeseries"},
        Row{"lock_acquisitions_per_type_per_node", "load-distribution",
            "Lock acquisitions per observer type per node", "heatmap"},
        Row{"acquisition_counts_by_node_and_type_last_hour", "load-distribution",
            "Lock acquisitions by node and type, last hour", "table"},
        Row{"polling_success_rate_per_type", "observer-health",
            "Polling success rate per observer type", "timeseries"},
        Row{"polling_duration_p50_p95_p99", "observer-health", "Polling duration per observer type",
            "timeseries"},
        Row{"lock_contention_rate", "observer-health", "Lock contention rate", "timeseries"},
        Row{"a_type_with_no_successful_polls", "observer-health",
            "Successful polls in the last 5 minutes", "stat"},
        Row{"active_nodes_polling", "active-active", "Active nodes polling", "timeseries"},
        Row{"lock_attempts_and_acquisitions", "active-active",
            "Lock attempts and acquisitions, all nodes", "timeseries"},
        Row{"load_balance_score", "active-active", "Load balance score, last hour", "gauge"},
        Row{"only_one_node_acquiring", "active-active",
            "Nodes that acquired locks in the last 30 minutes", "stat"}),
    [](const auto& row) { return row.param.name; });

TEST(DashboardFiles, the_acquisitions_per_node_are_stacked) {
  const Json found = panel("load-distribution", "Lock acquisitions per node over time");
  EXPECT_EQ(found["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"], "normal");
}

}  // namespace
}  // namespace baton::test
