#pragma once

// What the tests of baton-gateway share: real processes on stores of the test's own.

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "apps/gateway/signal.h"
#include "apps/gateway/sqlite.h"
#include "baton/locks.h"
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
  std::unique_ptr<gateway::Sqlite> database() const {
    return gateway::Sqlite::open((dir_ / "objects.db").string()).value();
  }

  static std::string signal(const std::string& alert, const std::string& node = "worker-1") {
    return R"({"alertName":")" + alert + R"(","resource":{"kind":"Node","name":")" + node + "\"}}";
  }
  static std::string fingerprint(const std::string& alert, const std::string& node = "worker-1") {
    return gateway::fingerprint_of(alert, {.kind = "Node", .name = node});
  }
  static LockName lock_of(const std::string& alert) {
    return gateway::signal_lock(fingerprint(alert));
  }

  std::int64_t count(const std::string& sql,
                     const std::vector<gateway::Sqlite::Value>& values = {}) {
    return gateway::number(database()->query(sql, values).value().front(), 0);
  }

  TempDir dir_{"gateway"};
};

}  // namespace baton::test
