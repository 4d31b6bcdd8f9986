// The signal gateway: several processes, one remediation request.

#include <csignal>

#include "integration/gateway/gateway_support.h"

namespace baton::test {
namespace {

class SignalGatewayTest : public GatewayTest {
 protected:
  void start_gateways(std::size_t number, const Words& extra = {}) {
    for (std::size_t i = 0; i < number; ++i) {
      gateways_.push_back(start("signals", "gateway-" + std::to_string(i), extra));
    }
  }

  void send(Clients& clients, std::size_t number, const std::string& alert,
            std::size_t over_gateways) {
    for (std::size_t i = 0; i < number; ++i) {
      const int port = gateways_[i % over_gateways]->port();
      clients.send(
          signal(alert), [port](std::size_t) { return port; }, false);
    }
  }

  // Half of the requests come in one second, half in the next. All have seen that there is no
  // request yet, and all wait for the lock, before the first may go on.
  void one_of_a_hundred(std::size_t over_gateways) {
    start_gateways(3);
    LockClient ours = locks();
    const LockName name = lock_of("HighMemory");
    auto held = ours.acquire(name);
    ASSERT_TRUE(held) << held.error().message;
    Clients clients;
    const auto waiting = [&] { return ours.get(name).value().waiting; };
    send(clients, kRequests / 2, "HighMemory", over_gateways);
    ASSERT_TRUE(poll_until([&] { return waiting() == kRequests / 2; })) << waiting();
    wait_for_the_next_second();
    send(clients, kRequests / 2, "HighMemory", over_gateways);
    ASSERT_TRUE(poll_until([&] { return waiting() == kRequests; })) << waiting();
    EXPECT_LT(gateways_.front()->threads(), 25) << "a waiting request needs no thread";
    ASSERT_TRUE(held->release());
    clients.wait();

    EXPECT_EQ(clients.with(201), 1U);
    EXPECT_EQ(clients.with(202), kRequests - 1);
    EXPECT_EQ(clients.bodies_named().size(), 1U) << "all were told the same name";
    EXPECT_EQ(count("SELECT count(*) FROM gateway_request"), 1);
    EXPECT_EQ(count("SELECT duplicates FROM gateway_request"),
              static_cast<std::int64_t>(kRequests - 1));
    double attempts = 0;
    double created = 0;
    for (const auto& gateway : gateways_) {
      attempts += gateway->metric("gateway_lock_acquisition_attempts_total");
      created += gateway->metric("gateway_signals_total{result=\"created\"}");
    }
    EXPECT_EQ(attempts, kRequests);
    EXPECT_EQ(created, 1);
  }

  // Clients as they are in life: who gets no answer asks another gateway.
  void send_half_stubbornly(Clients& clients, const std::string& alert) {
    clients.send_stubbornly(kRequests / 2, signal(alert), gateways_);
  }

  void expect_one_request(const Clients& clients, const std::string& alert) {
    EXPECT_EQ(clients.with(201) + clients.with(202), kRequests);
    EXPECT_LE(clients.with(201), 1U) << "its maker may have died before it could say so";
    EXPECT_EQ(
        count("SELECT count(*) FROM gateway_request WHERE fingerprint = $1", {fingerprint(alert)}),
        1);
  }

  // Not in the middle of a transaction of the lock store, where it would hold up everybody.
  void pause(Service& service) {
    LockClient ours = locks();
    ASSERT_TRUE(poll_until([&] {
      if (!stop_still(service.process().pid())) return false;
      if (ours.try_acquire({.subject = "probe"})) return true;
      service.process().kill(SIGCONT);
      return false;
    }));
  }

  void kill(const std::string& owner) { kill_gateway(gateways_, owner); }

  std::vector<std::unique_ptr<Service>> gateways_;
};

TEST_F(SignalGatewayTest, of_a_hundred_requests_to_one_gateway_one_makes_the_object) {
  one_of_a_hundred(1);
}

TEST_F(SignalGatewayTest, of_a_hundred_requests_to_three_gateways_one_makes_the_object) {
  one_of_a_hundred(3);
}

TEST_F(SignalGatewayTest, of_a_storm_without_an_order_one_makes_the_object) {
  start_gateways(3);
  for (int round = 0; round < 5; ++round) {
    const std::string alert = "Storm-" + std::to_string(round);
    Clients clients;
    send(clients, kRequests, alert, 3);
    clients.wait();
    EXPECT_EQ(clients.with(201), 1U);
    EXPECT_EQ(clients.with(202), kRequests - 1);
  }
  EXPECT_EQ(count("SELECT count(*) FROM gateway_request"), 5);
}

// The one that holds the lock has been stuck in the middle of creating since the second before when
// it is killed. Half of the requests come only then.
TEST_F(SignalGatewayTest, a_gateway_killed_while_it_creates_loses_no_request_and_doubles_none) {
  start_gateways(3, {"--ttl", "2s", "--wait", "20s"});
  LockClient ours = locks();
  const auto blocker = database();
  ASSERT_TRUE(blocker->script("BEGIN IMMEDIATE"));
  Clients clients;
  std::string holder;
  const auto held_and_waited_for = [&](std::size_t by) {
    return poll_until([&] {
      const auto lock = ours.get(lock_of("Killed")).value();
      if (lock.holders.empty() || lock.waiting < by) return false;
      holder = lock.holders.front().owner;
      return true;
    });
  };
  send_half_stubbornly(clients, "Killed");
  ASSERT_TRUE(held_and_waited_for(kRequests / 4));
  wait_for_the_next_second();
  ASSERT_TRUE(held_and_waited_for(kRequests / 4));
  kill(holder);
  send_half_stubbornly(clients, "Killed");
  ASSERT_TRUE(held_and_waited_for(kRequests * 3 / 4));
  ASSERT_TRUE(blocker->script("ROLLBACK"));
  clients.wait();
  expect_one_request(clients, "Killed");
}

// The one that has just created is killed, perhaps before it could answer or let go of the lock.
// Half of the requests come in the next second.
TEST_F(SignalGatewayTest, a_gateway_killed_after_it_created_loses_no_request_and_doubles_none) {
  start_gateways(3, {"--ttl", "2s", "--wait", "20s"});
  const auto reader = database();
  for (int round = 0; round < 3; ++round) {
    const std::string alert = "Killed-" + std::to_string(round);
    Clients clients;
    send_half_stubbornly(clients, alert);
    std::string maker;
    ASSERT_TRUE(poll_until(
        [&] {
          const auto rows = reader->query(
              "SELECT e.actor FROM gateway_event AS e JOIN gateway_request AS r"
              " ON r.name = e.object WHERE r.fingerprint = $1",
              {fingerprint(alert)});
          if (!rows || rows->empty()) return false;
          maker = rows->front().text(0);
          return true;
        },
        patience, std::chrono::microseconds(100)));
    kill(maker);
    wait_for_the_next_second();
    send_half_stubbornly(clients, alert);
    clients.wait();
    expect_one_request(clients, alert);
    for (std::size_t i = 0; i < gateways_.size(); ++i) {
      const std::string name = "gateway-" + std::to_string(i);
      if (name == maker) gateways_[i] = start("signals", name, {"--ttl", "2s", "--wait", "20s"});
    }
  }
}

// Paused between having looked and writing, it wakes up when somebody else has done the work.
TEST_F(SignalGatewayTest, a_gateway_that_was_paused_cannot_write_any_more) {
  start_gateways(2, {"--ttl", "2s", "--wait", "20s"});
  const auto blocker = database();
  ASSERT_TRUE(blocker->script("BEGIN IMMEDIATE"));
  Clients first;
  send(first, 1, "Paused", 1);
  ASSERT_TRUE(poll_until(
      [&] { return gateways_[0]->metric("gateway_lock_acquisition_successes_total") == 1; }));
  pause(*gateways_[0]);
  ASSERT_TRUE(blocker->script("ROLLBACK"));
  const auto second = http(gateways_[1]->port(), {"POST", "/signals", signal("Paused")});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->status, 201) << second->body;
  gateways_[0]->process().kill(SIGCONT);
  first.wait();
  EXPECT_EQ(first.with(201), 0U);
  EXPECT_EQ(count("SELECT count(*) FROM gateway_request"), 1);
}

TEST_F(SignalGatewayTest, a_signal_after_the_request_has_ended_makes_another_one) {
  start_gateways(1);
  const int port = gateways_.front()->port();
  const auto first = http(port, {"POST", "/signals", signal("Again")});
  ASSERT_EQ(first.value().status, 201);
  ASSERT_TRUE(database()->script("UPDATE gateway_request SET phase = 'Completed'"));
  const auto second = http(port, {"POST", "/signals", signal("Again")});
  ASSERT_EQ(second.value().status, 201);
  EXPECT_NE(first->headers.at("location"), second->headers.at("location"))
      << "even within the same second";
  const auto shown = http(port, {"GET", second->headers.at("location")});
  EXPECT_EQ(shown.value().status, 200);
  EXPECT_NE(shown->body.find(R"("phase":"Pending")"), std::string::npos) << shown->body;
}

TEST_F(SignalGatewayTest, without_the_lock_the_answer_is_503_and_when_to_come_back) {
  start_gateways(1, {"--wait", "200ms"});
  auto held = locks().acquire(lock_of("Busy"));
  ASSERT_TRUE(held);
  const auto answer = http(gateways_.front()->port(), {"POST", "/signals", signal("Busy")});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_GE(std::atoi(answer->headers.at("retry-after").c_str()), 1);
  EXPECT_EQ(answer->body.find("locks.db"), std::string::npos) << "nothing of our machine";
  EXPECT_EQ(
      gateways_.front()->metric("gateway_lock_acquisition_failures_total{reason=\"contention\"}"),
      1);
  EXPECT_EQ(count("SELECT count(*) FROM gateway_request"), 0);
}

TEST_F(SignalGatewayTest, every_lock_metric_of_the_design_says_what_happened) {
  using Clock = std::chrono::steady_clock;
  start_gateways(1);
  const auto hasty = start("signals", "hasty", {"--wait", "200ms"});
  const auto asks_in_vain = [&] {
    const auto begin = Clock::now();
    EXPECT_EQ(http(hasty->port(), {"POST", "/signals", signal("Measured")}).value().status, 503);
    return since(begin);
  };
  LockClient ours = locks();
  auto held = ours.acquire(lock_of("Measured"));
  ASSERT_TRUE(held);
  const auto blocker = database();
  ASSERT_TRUE(blocker->script("BEGIN IMMEDIATE"));
  const auto begin = Clock::now();
  Clients clients;
  send(clients, 1, "Measured", 1);
  ASSERT_TRUE(poll_until([&] { return ours.get(lock_of("Measured")).value().waiting == 1; }));
  const double waited = asks_in_vain();
  ASSERT_TRUE(held->release());
  ASSERT_TRUE(poll_until(
      [&] { return gateways_.front()->metric("gateway_lock_acquisition_successes_total") == 1; }));
  const double worked = asks_in_vain();
  ASSERT_TRUE(blocker->script("ROLLBACK"));
  clients.wait();
  const double all = since(begin);
  ASSERT_EQ(clients.with(201), 1U);

  const LockFigures patient(*gateways_.front(), "gateway");
  EXPECT_EQ(patient.attempts, 1);
  EXPECT_EQ(patient.successes, 1);
  EXPECT_EQ(patient.contention, 0);
  EXPECT_EQ(patient.api_errors, 0);
  EXPECT_EQ(patient.releases, 1);
  EXPECT_EQ(patient.acquisitions, 1);
  EXPECT_GE(patient.acquiring, waited);
  EXPECT_EQ(patient.holds, 1);
  EXPECT_GE(patient.holding, worked);
  EXPECT_LE(patient.acquiring + patient.holding, all);

  damage_the_locks();
  ASSERT_EQ(http(hasty->port(), {"POST", "/signals", signal("Other")}).value().status, 503);
  const LockFigures refused(*hasty, "gateway");
  EXPECT_EQ(refused.attempts, 3);
  EXPECT_EQ(refused.successes, 0);
  EXPECT_EQ(refused.contention, 2);
  EXPECT_EQ(refused.api_errors, 1);
  EXPECT_EQ(refused.releases, 0);
  EXPECT_EQ(refused.acquisitions, 0);
  EXPECT_EQ(refused.holds, 0);
}

TEST_F(SignalGatewayTest, without_the_objects_the_answer_is_503) {
  start_gateways(1);
  ASSERT_TRUE(database()->script("DROP TABLE gateway_request"));
  const int port = gateways_.front()->port();
  EXPECT_EQ(http(port, {"POST", "/signals", signal("Lost")}).value().status, 503);
  EXPECT_EQ(http(port, {"GET", "/readyz"}).value().status, 503);
  EXPECT_EQ(http(port, {"GET", "/healthz"}).value().status, 200) << "it is not the process";
}

TEST_F(SignalGatewayTest, says_what_is_wrong_with_a_signal) {
  start_gateways(1);
  const int port = gateways_.front()->port();
  const std::map<std::string, std::string> wrong = {
      {"", "no JSON object"},
      {"[]", "no JSON object"},
      {R"({"resource":{"kind":"Node","name":"a"}})", "alertName is missing"},
      {R"({"alertName":"A"})", "resource is missing"},
      {R"({"alertName":"A","resource":{"kind":"Node"}})", "resource: name is missing"},
      {R"({"alertName":"A","resource":{"kind":"Node","name":"a/b"}})", "resource: name may have"},
      {R"({"alertName":"A","resource":{"kind":"Node","name":"a"},"fingerpint":"x"})",
       "'fingerpint' is no field"},
  };
  for (const auto& [body, part] : wrong) {
    const auto answer = http(port, {"POST", "/signals", body});
    ASSERT_TRUE(answer) << body;
    EXPECT_EQ(answer->status, 400) << body;
    EXPECT_NE(answer->body.find(part), std::string::npos) << body << " " << answer->body;
  }
  EXPECT_EQ(http(port, {"POST", "/signals", std::string(2 << 20, ' ')}).value().status, 413);
  EXPECT_EQ(http(port, {"GET", "/signals"}).value().status, 405);
  EXPECT_EQ(gateways_.front()->metric("gateway_signals_total{result=\"rejected\"}"),
            static_cast<double>(wrong.size()));
}

TEST_F(SignalGatewayTest, finishes_what_it_has_begun_when_it_is_asked_to_end) {
  start_gateways(1);
  auto held = locks().acquire(lock_of("Last"));
  ASSERT_TRUE(held);
  Clients clients;
  send(clients, 1, "Last", 1);
  LockClient ours = locks();
  ASSERT_TRUE(poll_until([&] { return ours.get(lock_of("Last")).value().waiting == 1; }));
  Process& process = gateways_.front()->process();
  process.kill(SIGTERM);
  ASSERT_TRUE(process.wait_for_out("stopping"));
  ASSERT_TRUE(held->release());
  clients.wait();
  EXPECT_EQ(clients.with(201), 1U);
  const auto status = process.wait();
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success()) << status->describe() << process.err();
}

TEST_F(SignalGatewayTest, logs_an_object_a_line_with_the_correlation_id_of_the_request) {
  const auto gateway = start("signals", "gw-1");
  const std::string body = signal("Logged");
  HttpClient client(gateway->port());
  ASSERT_TRUE(
      client.send("POST /signals HTTP/1.1\r\nHost: x\r\nX-Correlation-Id: c-4711\r\n"
                  "Content-Length: " +
                  std::to_string(body.size()) + "\r\n\r\n" + body));
  const auto answer = client.read();
  ASSERT_TRUE(answer && answer->status == 201);
  ASSERT_TRUE(gateway->process().wait_for_out("request created"));
  const std::string out = gateway->process().out();
  const std::string line = out.substr(out.find('\n') + 1);
  EXPECT_TRUE(line.starts_with("{\"@timestamp\":\"")) << line;
  for (const std::string field :
       {R"("level":"INFO")", R"("logger_name":"baton.gateway")", R"("message":"request created")",
        R"("service":"gateway")", R"("node":"gw-1")", R"("correlationId":"c-4711")",
        R"("fingerprint":")"}) {
    EXPECT_NE(line.find(field), std::string::npos) << field << " in " << line;
  }
  EXPECT_EQ(gateway->process().err(), "");
  EXPECT_EQ(gateway->metric(R"(baton_lock_acquisition_successes_total{predicate="deduplicating",)"
                            R"(subject="gw-lock"})"),
            1);
}

TEST_F(SignalGatewayTest, logs_text_for_people_if_asked_to) {
  const auto gateway = start("signals", "gw-1", {"--log", "text"});
  const std::string out = gateway->process().out();
  EXPECT_NE(out.find("Z INFO  [gw-1] listening on http://127.0.0.1:"), std::string::npos) << out;
}

TEST_F(SignalGatewayTest, goes_on_if_nobody_reads_its_log_any_more) {
  // head takes the first line, and leaves; what is killed at the end is the gateway itself.
  const Service piped({"/bin/bash", "-c", R"(exec "$@" > >(head -n 1))", "bash", BATON_GATEWAY,
                       "signals", "--listen", "127.0.0.1:0", "--store", store(), "--objects",
                       objects()});
  for (const std::string alert : {"First", "Second", "Third"}) {
    const auto answer = http(piped.port(), {"POST", "/signals", signal(alert)});
    ASSERT_TRUE(answer) << alert;
    EXPECT_EQ(answer->status, 201) << alert;
  }
}

TEST_F(SignalGatewayTest, with_a_token_only_those_who_have_it_are_served) {
  const std::string token = "0123456789abcdef-secret";
  std::ofstream(dir_ / "token") << token << "\n";
  start_gateways(1, {"--token-file", (dir_ / "token").string()});
  const int port = gateways_.front()->port();
  const auto ask = [&](const std::string& method, const std::string& path,
                       const std::string& headers, const std::string& body = "") {
    HttpClient client(port);
    client.send(method + " " + path + " HTTP/1.1\r\nHost: x\r\n" + headers +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    return client.read().value_or(HttpAnswer{});
  };
  const auto none = ask("POST", "/signals", "", signal("A"));
  EXPECT_EQ(none.status, 401);
  EXPECT_EQ(none.headers.at("www-authenticate"), "Bearer realm=\"baton-gateway\"");
  for (const std::string& wrong :
       {std::string("Bearer"), std::string("Bearer "), "Bearer " + token + "x",
        "Bearer " + token.substr(1), "Basic " + token, token, "Bearer " + token + " " + token}) {
    const auto answer = ask("POST", "/signals", "Authorization: " + wrong + "\r\n", signal("A"));
    EXPECT_EQ(answer.status, 401) << wrong;
    EXPECT_EQ(answer.body.find("secret"), std::string::npos);
  }
  EXPECT_EQ(ask("GET", "/requests/x", "").status, 401);
  EXPECT_EQ(count("SELECT count(*) FROM gateway_request"), 0);
  EXPECT_EQ(ask("POST", "/signals", "Authorization: bearer  " + token + "\r\n", signal("A")).status,
            201);
  for (const char* open : {"/healthz", "/readyz", "/metrics"}) {
    EXPECT_EQ(ask("GET", open, "").status, 200) << open;
  }
  EXPECT_EQ(gateways_.front()->process().out().find("secret"), std::string::npos);
}

TEST_F(SignalGatewayTest, the_token_may_come_from_the_environment) {
  Process process({.argv = {BATON_GATEWAY, "signals", "--listen", "127.0.0.1:0", "--store", store(),
                            "--objects", objects()},
                   .env = {{"BATON_GATEWAY_TOKEN", "0123456789abcdef"}}});
  constexpr std::string_view kSaid = "listening on http://127.0.0.1:";
  ASSERT_TRUE(process.wait_for_out("\n")) << process.err();
  const std::string out = process.out();
  const int port = std::atoi(out.c_str() + out.find(kSaid) + kSaid.size());
  EXPECT_EQ(http(port, {"POST", "/signals", signal("A")}).value_or(HttpAnswer{}).status, 401);
}

TEST_F(SignalGatewayTest, signals_above_those_that_may_be_pending_are_told_to_come_back) {
  start_gateways(1, {"--max-pending", "3", "--max-body", "2000"});
  LockClient ours = locks();
  auto held = ours.acquire(lock_of("HighMemory"));
  ASSERT_TRUE(held) << held.error().message;
  Clients clients;
  send(clients, 3, "HighMemory", 1);
  ASSERT_TRUE(poll_until([&] { return ours.get(lock_of("HighMemory")).value().waiting == 3; }));
  const int port = gateways_.front()->port();
  const auto answer = http(port, {"POST", "/signals", signal("Other")});
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 429);
  EXPECT_EQ(answer->headers.at("retry-after"), "1");
  EXPECT_EQ(http(port, {"GET", "/healthz"}).value_or(HttpAnswer{}).status, 200);
  ASSERT_TRUE(held->release());
  clients.wait();
  EXPECT_EQ(clients.with(201) + clients.with(202), 3U);
  EXPECT_EQ(http(port, {"POST", "/signals", signal("Other")}).value_or(HttpAnswer{}).status, 201);
  EXPECT_EQ(http(port, {"POST", "/signals", std::string(2001, ' ')}).value_or(HttpAnswer{}).status,
            413);
}

TEST_F(GatewayTest, warns_if_others_reach_it_and_need_no_token) {
  const auto says = [&](const Words& extra, const std::map<std::string, std::string>& env) {
    Words words{BATON_GATEWAY, "signals",   "--listen", "0.0.0.0:0", "--store",
                store(),       "--objects", objects(),  "--log",     "text"};
    words.insert(words.end(), extra.begin(), extra.end());
    Process process({.argv = words, .env = {env.begin(), env.end()}});
    EXPECT_TRUE(process.wait_for_out("listening on")) << process.err();
    process.kill(SIGTERM);
    EXPECT_TRUE(process.wait());
    return process.out();
  };
  EXPECT_NE(says({}, {}).find("WARN"), std::string::npos);
  EXPECT_EQ(says({}, {{"BATON_GATEWAY_TOKEN", "0123456789abcdef"}}).find("WARN"),
            std::string::npos);
}

TEST_F(GatewayTest, a_wrong_command_line_is_explained) {
  const auto refuses = [](Words words, const std::string& part) {
    words.insert(words.begin(), BATON_GATEWAY);
    const auto run = test::run({.argv = words});
    EXPECT_EQ(run.status.code, 2);
    EXPECT_NE(run.err.find(part), std::string::npos) << run.err;
  };
  refuses({}, "say what to do: signals orchestrator");
  refuses({"singals"}, "did you mean 'signals'?");
  refuses({"signals", "--ttl", "5"}, "--ttl");
  refuses({"signals", "--listen", "8080"}, "IP:PORT");
  refuses({"signals", "--store", "nowhere:x"}, "nowhere");
  refuses({"signals", "--store", ""}, "--store: it is empty");
  const auto unnamed =
      test::run({.argv = {BATON_GATEWAY, "signals"}, .env = {{"BATON_STORE", ""}}});
  EXPECT_EQ(unnamed.status.code, 2) << "it would lock in another store than the rest does";
  refuses({"signals", "--store", store(), "--objects", "x://u:secret@h"}, "x://u:***@h");
  refuses({"signals", "--token-file", (dir_ / "none").string()}, "cannot read");
  std::ofstream(dir_ / "short") << "secret";
  refuses({"signals", "--token-file", (dir_ / "short").string()}, "from 16 to 4096 characters");
  std::ofstream(dir_ / "long") << "0123456789abcdef\n" << std::string(10'000, 'x');
  refuses({"signals", "--token-file", (dir_ / "long").string()}, "from 16 to 4096 characters");
  const auto help = test::run({.argv = {BATON_GATEWAY, "signals", "--help"},
                               .env = {{"BATON_STORE", "postgres://u:secret@h/d"}}});
  EXPECT_TRUE(help.status.success());
  EXPECT_EQ(help.out.find("secret"), std::string::npos);
  EXPECT_NE(help.out.find("Examples:"), std::string::npos);
  const auto orchestrator = test::run({.argv = {BATON_GATEWAY, "orchestrator", "--help"}});
  EXPECT_NE(orchestrator.out.find("--requeue TIME"), std::string::npos) << orchestrator.out;
  EXPECT_NE(orchestrator.out.find("(default 100ms)"), std::string::npos) << orchestrator.out;
}

}  // namespace
}  // namespace baton::test
