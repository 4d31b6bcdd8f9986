// The remediation orchestrator: several processes, one workflow execution for a target at a time.

#include <csignal>

#include "integration/gateway/gateway_support.h"
#include "json/json.h"

namespace baton::test {
namespace {

class OrchestratorTest : public GatewayTest {
 protected:
  void start_all(std::size_t orchestrators) {
    gateway_ = start("signals", "gateway");
    for (std::size_t i = 0; i < orchestrators; ++i) {
      orchestrators_.push_back(start("orchestrator", "orchestrator-" + std::to_string(i), kShort));
    }
  }

  void report(const std::string& alert, const std::string& node) {
    const auto answer = http(gateway_->port(), {"POST", "/signals", signal(alert, node)});
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->status, 201) << answer->body;
  }

  std::vector<std::string> running(int port) const {
    std::vector<std::string> names;
    const auto answer = http(port, {"GET", "/executions?phase=Running"});
    if (!answer) return names;
    const auto list = nlohmann::json::parse(answer->body);
    for (const auto& execution : list["workflowExecutions"]) {
      names.push_back(execution["name"]);
    }
    return names;
  }

  // Does the work of all executions, through whichever orchestrator answers, until none is left.
  void execute_all(std::size_t requests) {
    std::size_t turn = 0;
    ASSERT_TRUE(poll_until([&] {
      const int port = orchestrators_[++turn % orchestrators_.size()]->port();
      for (const std::string& name : running(port)) {
        (void)http(port, {"POST", "/executions/" + name + "/finish", R"({"phase":"Completed"})"});
      }
      return static_cast<std::size_t>(count(
                 "SELECT count(*) FROM gateway_request WHERE phase = 'Completed'")) == requests;
    })) << count("SELECT count(*) FROM gateway_request WHERE phase = 'Completed'");
  }

  // The record of what was committed, in order: of each target, one is finished before another is
  // made, and each that is made is made by a later holder of the lock.
  void check_history(std::size_t executions) {
    const auto events = database()->query(
        "SELECT event, object, target, token FROM gateway_event"
        " WHERE event LIKE 'execution %' ORDER BY seq");
    ASSERT_TRUE(events);
    std::map<std::string, std::string> active;
    std::map<std::string, std::int64_t> tokens;
    std::set<std::string> made;
    for (const auto& event : *events) {
      const std::string object = event.text(1);
      const std::string target = event.text(2);
      if (event.text(0) == "execution created") {
        EXPECT_FALSE(active.contains(target)) << object << " beside " << active[target];
        EXPECT_TRUE(made.insert(object).second) << object << " was made twice";
        EXPECT_GT(event.integer(3), tokens[target]) << object;
        tokens[target] = event.integer(3);
        active[target] = object;
      } else {
        EXPECT_EQ(active[target], object) << "finished without having been active";
        active.erase(target);
      }
    }
    EXPECT_EQ(made.size(), executions);
    EXPECT_TRUE(active.empty());
  }

  const Words kShort{"--ttl", "2s"};
  std::unique_ptr<Service> gateway_;
  std::vector<std::unique_ptr<Service>> orchestrators_;
};

TEST_F(OrchestratorTest, two_orchestrators_start_one_execution_for_a_target_at_a_time) {
  start_all(2);
  constexpr std::size_t kForOne = 30;
  for (std::size_t i = 0; i < kForOne; ++i) report("Alert-" + std::to_string(i), "worker-1");
  for (std::size_t i = 0; i < 5; ++i) report("Other", "worker-2" + std::to_string(i));
  execute_all(kForOne + 5);
  check_history(kForOne + 5);
  double started = 0;
  for (const auto& orchestrator : orchestrators_) {
    started += orchestrator->metric("ro_executions_started_total");
    EXPECT_GE(orchestrator->metric("ro_lock_acquisition_attempts_total"), 0);
  }
  EXPECT_EQ(started, kForOne + 5);
}

TEST_F(OrchestratorTest, an_orchestrator_that_is_killed_takes_no_request_with_it) {
  start_all(2);
  constexpr std::size_t kAll = 20;
  for (std::size_t i = 0; i < kAll; ++i) report("Alert-" + std::to_string(i), "worker-1");
  ASSERT_TRUE(poll_until(
      [&] { return count("SELECT count(*) FROM gateway_execution WHERE phase = 'Running'") > 0; }));
  orchestrators_.front()->process().kill(SIGKILL);
  ASSERT_TRUE(orchestrators_.front()->process().wait());
  orchestrators_.erase(orchestrators_.begin());
  execute_all(kAll);
  check_history(kAll);
}

TEST_F(OrchestratorTest, every_lock_metric_of_the_design_says_what_happened) {
  const auto begin = std::chrono::steady_clock::now();
  start_all(1);
  const Service& orchestrator = *orchestrators_.front();
  LockClient ours = locks();
  const auto hold = [&](const std::string& node) {
    return ours.acquire(gateway::target_lock({.kind = "Node", .name = node})).value();
  };
  const auto failures = [&](const std::string& reason) {
    return orchestrator.metric("ro_lock_acquisition_failures_total{reason=\"" + reason + "\"}");
  };
  Lease held = hold("worker-1");
  report("Alert", "worker-1");
  ASSERT_TRUE(poll_until([&] { return failures("contention") >= 2; }));
  EXPECT_EQ(orchestrator.metric("ro_lock_acquisition_successes_total"), 0);
  ASSERT_TRUE(held.release());
  ASSERT_TRUE(
      poll_until([&] { return orchestrator.metric("ro_lock_hold_duration_seconds_count") == 1; }));
  const LockFigures figures(orchestrator, "ro");  // nothing is left to be locked
  EXPECT_EQ(figures.attempts, figures.contention + 1);
  EXPECT_EQ(figures.successes, 1);
  EXPECT_EQ(figures.contention, orchestrator.metric("ro_requeues_total{reason=\"lock_busy\"}"));
  EXPECT_EQ(figures.api_errors, 0);
  EXPECT_EQ(figures.acquisitions, 1);
  EXPECT_GT(figures.acquiring, 0);
  EXPECT_EQ(figures.holds, 1);
  EXPECT_GT(figures.holding, 0);
  EXPECT_LT(figures.acquiring + figures.holding, since(begin));

  const Lease other = hold("worker-2");
  report("Alert", "worker-2");
  damage_the_locks();
  EXPECT_TRUE(poll_until([&] { return failures("api_error") > 0; }));
}

TEST_F(OrchestratorTest, an_execution_ends_once) {
  start_all(1);
  report("Alert", "worker-1");
  const int port = orchestrators_.front()->port();
  ASSERT_TRUE(poll_until([&] { return !running(port).empty(); }));
  const std::string path = "/executions/" + running(port).front();
  EXPECT_EQ(http(port, {"POST", path + "/finish", R"({"phase":"Running"})"}).value().status, 400);
  EXPECT_EQ(http(port, {"POST", path + "/finish", R"({"phase":"Failed"})"}).value().status, 200);
  EXPECT_EQ(http(port, {"POST", path + "/finish", R"({"phase":"Failed"})"}).value().status, 200)
      << "asking again is harmless";
  EXPECT_EQ(http(port, {"POST", path + "/finish", R"({"phase":"Completed"})"}).value().status, 409);
  EXPECT_EQ(http(port, {"POST", "/executions/none/finish", R"({"phase":"Failed"})"}).value().status,
            404);
  const auto shown = http(port, {"GET", path});
  EXPECT_NE(shown.value().body.find(R"("phase":"Failed")"), std::string::npos) << shown->body;
  ASSERT_TRUE(poll_until(
      [&] { return count("SELECT count(*) FROM gateway_request WHERE phase = 'Failed'") == 1; }));
}

}  // namespace
}  // namespace baton::test
