// `baton relay` as processes that are killed, stopped and restarted, with a database that crashes.

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "baton/outbox.h"
#include "support/http_client.h"
#include "support/postgres_database.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/relay_support.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class RelayProcesses : public ::testing::Test {
 protected:
  RelayProcesses() {
    const auto made = run({.argv = {BATON_PROGRAM, "store", "migrate", "--store", url()}});
    if (!made.status.success()) throw std::runtime_error(made.err);
    install_outbox(Session(url()).get()).value();
    std::ofstream(dir_ / "topology.yaml")
        << "exchanges:\n  shop:\nqueues:\n  all:\nbindings:\n"
           "  - exchange: shop\n    pattern: '#'\n    queue: all\n";
  }

  std::string url() const { return server_.url(); }
  std::string broker_url() const { return "embedded:" + (dir_ / "mq" / "broker.db").string(); }

  std::unique_ptr<Process> start(const std::string& node, std::vector<std::string> more = {}) {
    std::vector<std::string> argv{BATON_PROGRAM, "relay",
                                  "--outbox",    url(),
                                  "--broker",    broker_url(),
                                  "--store",     url(),
                                  "--owner",     node,
                                  "--ttl",       "2s",
                                  "--topology",  (dir_ / "topology.yaml").string()};
    argv.insert(argv.end(), more.begin(), more.end());
    return std::make_unique<Process>(ProcessOptions{.argv = std::move(argv)});
  }

  // Each event carries how many of its aggregate were committed before.
  void add(Session& in, int events) {
    for (int i = 0; i < events; ++i) {
      const int aggregate = ++added_ % kAggregates;
      const std::string name = "o-" + std::to_string(aggregate);
      if (added_ % 10 == 0) {
        in.sql("BEGIN");
        rolled_back_.push_back(
            outbox_.add(in.get(), {.type = "OrderUndone", .aggregate = name}).value());
        in.sql("ROLLBACK");
      }
      in.sql("BEGIN");
      outbox_
          .add(in.get(), {.type = "OrderPlaced",
                          .aggregate = name,
                          .payload = std::to_string(committed_[aggregate]),
                          .correlation_id = "request-" + name})
          .value();
      in.sql("COMMIT");
      ++committed_[aggregate];
    }
  }

  std::string unsent() const {
    return server_.sql("SELECT count(*) FROM outbox_events WHERE status <> 'SENT'");
  }

  void expect_all(const Spy& spy) {
    EXPECT_TRUE(spy.wait_for(static_cast<std::size_t>(added_)));
    EXPECT_TRUE(poll_until([&] { return unsent() == "0"; }));
    for (const auto& [aggregate, count] : committed_) {
      std::vector<std::string> expected;
      for (int i = 0; i < count; ++i) expected.push_back(std::to_string(i));
      EXPECT_EQ(spy.bodies("o-" + std::to_string(aggregate)), expected) << aggregate;
    }
    for (const auto& id : rolled_back_) EXPECT_FALSE(spy.has(id));
    EXPECT_EQ(server_.sql("SELECT max(retry_count) FROM outbox_events"), "0");
  }

  static constexpr int kAggregates = 20;
  TempDir dir_ = TempDir::in_memory("relay");
  PostgresServer server_;
  const Outbox outbox_{{.exchange = "shop"}};
  int added_ = 0;
  std::map<int, int> committed_;
  std::vector<std::string> rolled_back_;
};

TEST_F(RelayProcesses, every_committed_event_comes_in_order_whatever_dies) {
  std::filesystem::create_directory(dir_ / "mq");
  auto a = start("a");
  auto b = start("b");
  auto c = start("c");
  ASSERT_TRUE(a->wait_for_out("LANE_TAKEN")) << a->err();
  const auto broker = Broker::open(broker_url()).value();
  const Spy spy(broker, "all");
  auto session = std::make_unique<Session>(url());
  add(*session, 150);
  a->kill(SIGKILL);
  add(*session, 150);
  ASSERT_TRUE(b->wait_for_out("LANE_TAKEN")) << b->err();
  std::thread beside([&] {
    Session other(url());
    add(other, 300);
  });
  stop_still(b->pid());
  beside.join();
  // Past its TTL the others have its lanes, and it goes on with what it had in memory. It may have
  // been stopped inside a transaction of the broker's file; then nobody gets on before it does.
  (void)poll_until([&] { return unsent() == "0"; }, 6s);
  b->kill(SIGCONT);
  a = start("a");
  add(*session, 150);
  session.reset();
  server_.crash();
  server_.start();
  session = std::make_unique<Session>(url());
  add(*session, 150);
  expect_all(spy);
  for (auto* relay : {&a, &b, &c}) {
    (*relay)->kill(SIGTERM);
    const auto ended = (*relay)->wait();
    ASSERT_TRUE(ended) << (*relay)->out();
    EXPECT_EQ(ended->code, 128 + SIGTERM) << (*relay)->err();
    EXPECT_EQ((*relay)->out().find("EVENTS_SWEPT"), std::string::npos);
  }
}

TEST_F(RelayProcesses, a_relay_starts_while_database_store_and_broker_are_down) {
  server_.stop();
  auto relay = start("a", {"--metrics", "127.0.0.1:0", "--log-level", "debug"});
  ASSERT_TRUE(relay->wait_for_err("waiting for the store")) << relay->err();
  server_.start();
  ASSERT_TRUE(relay->wait_for_out("RELAY_STARTED")) << relay->err();
  Session session(url());
  add(session, 20);
  ASSERT_TRUE(relay->wait_for_out("RELAY_TROUBLE")) << relay->out();
  std::filesystem::create_directory(dir_ / "mq");
  ASSERT_TRUE(relay->wait_for_out("RELAY_RECOVERED")) << relay->out();
  const auto broker = Broker::open(broker_url()).value();
  const Spy spy(broker, "all");
  expect_all(spy);
  const auto out = relay->out();
  const auto at = out.find("http://127.0.0.1:");
  ASSERT_NE(at, std::string::npos) << out;
  const int port = std::stoi(out.substr(at + std::string_view("http://127.0.0.1:").size()));
  EXPECT_TRUE(poll_until([&] {
    const auto answer = http(port, {.path = "/metrics"});
    const std::string text = answer ? answer->body : "";
    return text.find("baton_outbox_published_total{outbox=\"default\"} 20") != std::string::npos &&
           text.find("baton_outbox_lanes_owned{outbox=\"default\"} 16") != std::string::npos &&
           text.find("baton_outbox_swept_total{outbox=\"default\"} 0") != std::string::npos;
  }));
  relay->kill(SIGTERM);
  EXPECT_TRUE(relay->wait());
  EXPECT_NE(relay->out().find("RELAY_STOPPED"), std::string::npos);
  const auto line = relay->out().find("OUTBOX_PUBLISH_SUCCESS");
  ASSERT_NE(line, std::string::npos);
  const auto rest = relay->out().substr(line, 400);
  EXPECT_NE(rest.find(R"("eventType":"OrderPlaced")"), std::string::npos) << rest;
  EXPECT_NE(rest.find(R"("correlationId":"request-o-)"), std::string::npos) << rest;
  EXPECT_NE(rest.find(R"("aggregateId":"o-)"), std::string::npos) << rest;
}

TEST_F(RelayProcesses, words_that_cannot_work_are_refused) {
  const auto refused = [&](std::vector<std::string> words, const std::string& part) {
    words.insert(words.begin(), {BATON_PROGRAM, "relay", "--store", url()});
    const auto done = run({.argv = words});
    EXPECT_EQ(done.status.code, 2) << part;
    EXPECT_NE(done.err.find(part), std::string::npos) << done.err;
    EXPECT_EQ(done.err.find("secret"), std::string::npos) << done.err;
  };
  refused({"--broker", broker_url()}, "--outbox");
  refused({"--outbox", url()}, "--broker");
  refused({"--outbox", url(), "--broker", "amqp://u:secret@h"}, "rabbitmq://");
  refused({"--outbox", "mysql://u:secret@h/d", "--broker", broker_url()}, "postgres://");
  refused({"--outbox", url(), "--broker", broker_url(), "--mode", "both"}, "--mode");
  refused({"--outbox", url(), "--broker", broker_url(), "--on-failed", "x"}, "--on-failed");
  refused({"--outbox", url(), "--broker", broker_url(), "--max-attempts", "0"}, "--max-attempts");
}

}  // namespace
}  // namespace baton::test
