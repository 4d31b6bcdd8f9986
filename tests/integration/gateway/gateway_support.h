#pragma once

// What the tests of baton-gateway share: real processes on stores of the test's own.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "apps/gateway/signal.h"
#include "baton/locks.h"
#include "sql/connection.h"
#include "support/http_client.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

// One baton-gateway, killed at the end of the scope.
class Service {
 public:
  explicit Service(std::vector<std::string> argv) : process_({.argv = std::move(argv)}) {
    constexpr std::string_view kSaid = "listening on http://127.0.0.1:";
    if (!process_.wait_for_out("\n")) {
      ADD_FAILURE() << "it does not start: " << process_.err();
      return;
    }
    const std::string out = process_.out();
    port_ = std::atoi(out.c_str() + out.find(kSaid) + kSaid.size());
  }

  [[nodiscard]] int port() const { return port_; }
  Process& process() { return process_; }

  [[nodiscard]] int threads() const {
    std::ifstream status("/proc/" + std::to_string(process_.pid()) + "/status");
    for (std::string word; status >> word;) {
      if (word == "Threads:" && status >> word) return std::atoi(word.c_str());
    }
    return -1;
  }

  // The value of one line of /metrics.
  [[nodiscard]] double metric(const std::string& series) const {
    const auto answer = http(port_, {"GET", "/metrics"});
    const std::string text = "\n" + (answer ? answer->body : "");
    const auto found = text.find("\n" + series + " ");
    return found == std::string::npos ? -1 : std::atof(text.c_str() + found + series.size() + 2);
  }

 private:
  Process process_;
  int port_ = 0;
};

using Services = std::vector<std::unique_ptr<Service>>;

// What the design has every service count and measure of its locks. Read while nothing happens.
struct LockFigures {
  double attempts, successes, contention, api_errors, releases;
  double acquisitions, acquiring;  // how many were measured, and their seconds in all
  double holds, holding;

  LockFigures(const Service& service, const std::string& prefix) {
    const std::string name = prefix + "_lock_";
    const auto failures = [&](const std::string& reason) {
      return service.metric(name + "acquisition_failures_total{reason=\"" + reason + "\"}");
    };
    attempts = service.metric(name + "acquisition_attempts_total");
    successes = service.metric(name + "acquisition_successes_total");
    contention = failures("contention");
    api_errors = failures("api_error");
    releases = service.metric(name + "releases_total");
    acquisitions = service.metric(name + "acquisition_duration_seconds_count");
    acquiring = service.metric(name + "acquisition_duration_seconds_sum");
    holds = service.metric(name + "hold_duration_seconds_count");
    holding = service.metric(name + "hold_duration_seconds_sum");
    EXPECT_EQ(service.metric(name + "acquisition_duration_seconds_bucket{le=\"+Inf\"}"),
              acquisitions);
    EXPECT_EQ(service.metric(name + "hold_duration_seconds_bucket{le=\"+Inf\"}"), holds);
  }
};

// Seconds since then.
inline double since(std::chrono::steady_clock::time_point then) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count();
}

// The one that was started with `--owner gateway-N`.
inline void kill_gateway(Services& gateways, const std::string& owner) {
  for (std::size_t i = 0; i < gateways.size(); ++i) {
    if (owner != "gateway-" + std::to_string(i)) continue;
    gateways[i]->process().kill(SIGKILL);
    ASSERT_TRUE(gateways[i]->process().wait());
    return;
  }
  ADD_FAILURE() << "no gateway is called " << owner;
}

inline constexpr std::size_t kRequests = 100;

// Clients that each send one signal and see it through.
class Clients {
 public:
  using Ports = std::function<int(std::size_t attempt)>;

  // Asks again, perhaps somebody else, until the signal is taken.
  void send(std::string body, Ports ports, bool stubborn) {
    threads_.emplace_back([this, body = std::move(body), ports = std::move(ports), stubborn] {
      const auto until = std::chrono::steady_clock::now() + 2 * patience;
      for (std::size_t attempt = 0; std::chrono::steady_clock::now() < until; ++attempt) {
        const auto answer = http(ports(attempt), {"POST", "/signals", body});
        const bool taken = answer && (answer->status == 201 || answer->status == 202);
        if (taken || !stubborn) return record(answer);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
      record(std::nullopt);
    });
  }

  // Clients as they are in life: who gets no answer asks another gateway.
  void send_stubbornly(std::size_t number, const std::string& body, const Services& gateways) {
    std::vector<int> ports;
    for (const auto& gateway : gateways) ports.push_back(gateway->port());
    for (std::size_t i = 0; i < number; ++i) {
      send(
          body, [ports, i](std::size_t attempt) { return ports[(i + attempt) % ports.size()]; },
          true);
    }
  }

  void wait() { threads_.clear(); }

  [[nodiscard]] std::size_t with(int status) const { return statuses_.count(status); }
  [[nodiscard]] const std::set<std::string>& bodies_named() const { return names_; }

 private:
  void record(const std::optional<HttpAnswer>& answer) {
    const std::lock_guard lock(mutex_);
    statuses_.insert(answer ? answer->status : 0);
    if (answer && answer->headers.contains("location")) {
      names_.insert(answer->headers.at("location"));
    }
  }

  mutable std::mutex mutex_;
  std::multiset<int> statuses_;
  std::set<std::string> names_;
  std::list<std::jthread> threads_;
};

inline void wait_for_the_next_second() {
  const auto second = [] {
    return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  };
  const auto now = second();
  ASSERT_TRUE(poll_until([&] { return second() != now; }));
}

inline std::string signal_text(const std::string& alert, const std::string& node = "worker-1") {
  return R"({"alertName":")" + alert + R"(","resource":{"kind":"Node","name":")" + node + "\"}}";
}
inline std::string fingerprint_text(const std::string& alert,
                                    const std::string& node = "worker-1") {
  return gateway::fingerprint_of(alert, {.kind = "Node", .name = node});
}

class GatewayTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  std::string store() const { return "sqlite:" + (dir_ / "locks.db").string(); }
  std::string objects() const { return "sqlite:" + (dir_ / "objects.db").string(); }

  std::unique_ptr<Service> start(const std::string& service, const std::string& owner,
                                 const Words& extra = {}) const {
    Words words{BATON_GATEWAY, service,     "--listen", "127.0.0.1:0", "--store",
                store(),       "--objects", objects(),  "--owner",     owner};
    words.insert(words.end(), extra.begin(), extra.end());
    return std::make_unique<Service>(std::move(words));
  }

  LockClient locks() const { return open(store(), {.owner = "test"}).value(); }

  // A connection of our own to the objects. They must have been made.
  std::unique_ptr<sql::Connection> database() const {
    return sql::Connection::open(objects()).value();
  }

  // The locks cannot be read or written any more.
  void damage_the_locks() const {
    const auto database = sql::Connection::open(store());
    ASSERT_TRUE(database.value()->script("DROP TABLE baton_lock"));
  }

  static std::string signal(const std::string& alert, const std::string& node = "worker-1") {
    return signal_text(alert, node);
  }
  static std::string fingerprint(const std::string& alert, const std::string& node = "worker-1") {
    return fingerprint_text(alert, node);
  }
  static LockName lock_of(const std::string& alert) {
    return gateway::signal_lock(fingerprint(alert));
  }

  std::int64_t count(const std::string& sql, const sql::Values& values = {}) {
    return database()->query(sql, values).value().front().integer(0);
  }

  TempDir dir_{"gateway"};
};

}  // namespace baton::test
