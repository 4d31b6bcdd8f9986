// The dashboards and rules against a real Prometheus that scrapes three real processes: every query
// returns data.

#include <cmath>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include <nlohmann/json.hpp>
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include "support/process.h"
#include "support/prometheus_server.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

using Json = nlohmann::json;

const std::string kGrafana = BATON_DEPLOY "/grafana/";
const std::vector<std::string> kRuleFiles = {BATON_DEPLOY "/prometheus/observers.rules.yml",
                                             BATON_DEPLOY "/prometheus/locks.rules.yml"};

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

// Three nodes on one store, and the Prometheus that looks at them.
class Deployment {
 public:
  Deployment() {
    PrometheusOptions options{.rule_files = kRuleFiles};
    for (const std::string node : {"node-a", "node-b", "node-c"}) {
      nodes_.push_back(std::make_unique<Process>(ProcessOptions{
          .argv = {BATON_OBSERVER_EXPORTER, "sqlite:" + (dir_ / "locks.db").string(), node}}));
      if (!nodes_.back()->wait_for_out("\n")) throw std::runtime_error(nodes_.back()->err());
      options.targets.push_back("127.0.0.1:" + std::to_string(std::stoi(nodes_.back()->out())));
    }
    prometheus_ = std::make_unique<PrometheusServer>(std::move(options));
  }

  PrometheusServer& prometheus() { return *prometheus_; }

  Json ask(const std::string& expression) {
    const Json answer = Json::parse(prometheus_->query(expression));
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
  bool has_data(const std::string& expression) {
    const Json samples = ask(expression);
    return std::any_of(samples.begin(), samples.end(),
                       [](const Json& sample) { return std::isfinite(number(sample)); });
  }
  bool gets_data(const std::string& expression) {
    return poll_until([&] { return has_data(expression) || ::testing::Test::HasFailure(); },
                      patience, std::chrono::milliseconds(50)) &&
           has_data(expression);
  }

 private:
  TempDir dir_{"deploy"};
  std::vector<std::unique_ptr<Process>> nodes_;
  std::unique_ptr<PrometheusServer> prometheus_;
};

class Dashboards : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { deployment = std::make_unique<Deployment>(); }
  static void TearDownTestSuite() { deployment.reset(); }
  static std::unique_ptr<Deployment> deployment;
};
std::unique_ptr<Deployment> Dashboards::deployment;

TEST_F(Dashboards, every_query_of_every_panel_returns_data) {
  std::size_t queries = 0;
  for (const std::string& name : all_dashboards()) {
    for (const Json& one : panels_of(name)) {
      EXPECT_FALSE(one["targets"].empty()) << name << ": " << one["title"];
      for (const Json& target : one["targets"]) {
        EXPECT_TRUE(deployment->gets_data(expression_of(target)))
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
          EXPECT_TRUE(deployment->gets_data(rule["record"].as<std::string>())) << rule["record"];
          continue;
        }
        ++alerts;
        // Of an alert that does not fire there is nothing to see but what it looks at.
        const auto expression = rule["expr"].as<std::string>();
        (void)deployment->ask(expression);
        const std::regex name("(scheduler_observer|baton)[a-z0-9_:]+");
        for (std::sregex_iterator it(expression.begin(), expression.end(), name), end; it != end;
             ++it) {
          EXPECT_TRUE(deployment->gets_data(it->str())) << rule["alert"] << ": " << it->str();
        }
      }
    }
  }
  EXPECT_GE(alerts, 19U);
}

TEST_F(Dashboards, an_alert_of_the_real_traffic_fires_and_no_rule_is_in_trouble) {
  EXPECT_TRUE(deployment->gets_data(
      R"(ALERTS{alertname="ObserverLockMissed",alertstate="firing",severity="info"})"));
  const Json answer = Json::parse(deployment->prometheus().get("/api/v1/rules"));
  std::size_t rules = 0;
  for (const Json& group : answer["data"]["groups"]) {
    for (const Json& rule : group["rules"]) {
      EXPECT_EQ(rule["health"], "ok") << rule["name"] << rule.value("lastError", "");
      ++rules;
    }
  }
  EXPECT_GE(rules, 30U);
}

TEST_F(Dashboards, three_nodes_are_seen_and_the_score_is_one_of_0_to_100) {
  const auto first = [](const std::string& name, const std::string& title) {
    return expression_of(panel(name, title)["targets"][0]);
  };
  EXPECT_TRUE(poll_until([&] {
    const Json nodes = deployment->ask(first("active-active", "Active nodes polling"));
    return nodes.size() == 1 && Deployment::number(nodes[0]) == 3;
  }));
  EXPECT_TRUE(poll_until([&] {
    return deployment
               ->ask(first("load-distribution", "Lock acquisitions by node and type, last hour"))
               .size() == 9;
  }));
  const Json score = deployment->ask(first("active-active", "Load balance score, last hour"));
  ASSERT_EQ(score.size(), 1U);
  EXPECT_GE(Deployment::number(score[0]), 0);
  EXPECT_LE(Deployment::number(score[0]), 100);
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
  EXPECT_EQ(uids.size(), 4U);
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
