// The gateway with its objects in PostgreSQL, and its locks there too: three replicas, one request.

#include <csignal>

#include <nlohmann/json.hpp>

#include "integration/gateway/gateway_support.h"
#include "support/postgres_database.h"

namespace baton::test {
namespace {

class GatewayPostgresTest : public ::testing::Test {
 protected:
  GatewayPostgresTest() { database_.migrate(); }

  Service& start(const std::string& service, const std::vector<std::string>& extra = {}) {
    std::vector<std::string> words{BATON_GATEWAY, service,
                                   "--listen",    "127.0.0.1:0",
                                   "--store",     database_.url(),
                                   "--objects",   database_.url(),
                                   "--owner",     "gateway-" + std::to_string(services_.size())};
    words.insert(words.end(), extra.begin(), extra.end());
    services_.push_back(std::make_unique<Service>(std::move(words)));
    return *services_.back();
  }
  std::string ask(const std::string& sql) { return Session(database_.url()).sql(sql); }

  static nlohmann::json get(const Service& service, const std::string& path) {
    const auto answer = http(service.port(), {.path = path});
    return answer && answer->status == 200 ? nlohmann::json::parse(answer->body) : nlohmann::json();
  }

  Database database_;
  Services services_;
};

TEST_F(GatewayPostgresTest, of_a_storm_over_three_gateways_one_makes_the_request) {
  for (int i = 0; i < 3; ++i) start("signals");
  Clients clients;
  clients.send_stubbornly(kRequests, signal_text("HighMemory"), services_);
  clients.wait();
  EXPECT_EQ(clients.with(201), 1U);
  EXPECT_EQ(clients.with(202), kRequests - 1);
  EXPECT_EQ(ask("SELECT count(*) || ' ' || sum(duplicates) FROM gateway_request"),
            "1 " + std::to_string(kRequests - 1));
}

TEST_F(GatewayPostgresTest, a_gateway_that_was_paused_cannot_write_any_more) {
  auto& first = start("signals", {"--ttl", "2s", "--wait", "20s"});
  auto& second = start("signals", {"--ttl", "2s", "--wait", "20s"});
  Session blocker(database_.url());
  blocker.sql("BEGIN; LOCK TABLE gateway_request IN SHARE MODE");  // it may be read
  Clients late;
  late.send(
      signal_text("Paused"), [&](std::size_t) { return first.port(); }, false);
  ASSERT_TRUE(
      poll_until([&] { return first.metric("gateway_lock_acquisition_successes_total") == 1; }));
  // Its INSERT waits for the table, or is about to: either way it is not done.
  ASSERT_TRUE(stop_still(first.process().pid()));
  // The server goes on with what it was sent: only a session that ended cannot write.
  ask("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state = 'active' AND "
      "wait_event_type = 'Lock' AND datname = current_database()");
  blocker.sql("ROLLBACK");
  const auto answer = http(second.port(), {"POST", "/signals", signal_text("Paused")});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 201) << answer->body;
  first.process().kill(SIGCONT);
  late.wait();
  EXPECT_EQ(late.with(201), 0U);
  EXPECT_EQ(ask("SELECT count(*) FROM gateway_request"), "1");
}

TEST_F(GatewayPostgresTest, requests_and_executions_are_listed_by_either_service) {
  auto& signals = start("signals");
  auto& orchestrator = start("orchestrator");
  for (const auto* node : {"worker-1", "worker-2"}) {
    ASSERT_EQ(http(signals.port(), {"POST", "/signals", signal_text("Full", node)})->status, 201);
  }
  ASSERT_TRUE(poll_until(
      [&] { return get(signals, "/executions?phase=Running")["workflowExecutions"].size() == 2; }));
  ASSERT_TRUE(poll_until([&] {
    return get(orchestrator, "/requests?phase=Running")["remediationRequests"].size() == 2;
  }));
  const std::string name = get(signals, "/executions")["workflowExecutions"][0]["name"];
  EXPECT_EQ(http(orchestrator.port(),
                 {"POST", "/executions/" + name + "/finish", R"({"phase":"Completed"})"})
                ->status,
            200);
  ASSERT_TRUE(poll_until([&] {
    return get(signals, "/requests?phase=Completed")["remediationRequests"].size() == 1;
  }));
  EXPECT_EQ(get(signals, "/requests")["remediationRequests"].size(), 2U);
  EXPECT_EQ(http(signals.port(), {.path = "/requests?phase=Perhaps"})->status, 400);
}

TEST_F(GatewayPostgresTest, a_role_without_the_right_to_create_finds_the_tables_there) {
  start("signals");
  ask("CREATE ROLE gateway_app LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON gateway_request, "
      "gateway_execution, gateway_event, gateway_meta TO gateway_app");
  Service plain({BATON_GATEWAY, "signals", "--listen", "127.0.0.1:0", "--store", database_.url(),
                 "--objects", database_.url_as("gateway_app")});
  EXPECT_EQ(get(plain, "/requests")["remediationRequests"].size(), 0U);
  plain.process().kill(SIGTERM);
  EXPECT_TRUE(plain.process().wait());
  ask("DROP OWNED BY gateway_app; DROP ROLE gateway_app");
}

}  // namespace
}  // namespace baton::test
