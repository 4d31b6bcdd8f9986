#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>

#include "baton/locks.h"
#include "baton/relay.h"
#include "relay/engine.h"
#include "relay/retention.h"

namespace baton::relay {

// A relay that runs: the engine on a thread of its own, and what divides the lanes.
class Runner {
 public:
  Runner(LockClient locks, std::string outbox_url, std::shared_ptr<Broker> broker,
         RelayOptions options);

  [[nodiscard]] Result<void> check() const;
  Result<void> run(const std::stop_token& stop);
  void expect_run();
  void expect_no_run();
  void request_stop() { stop_.request_stop(); }
  void wait_until_over();
  [[nodiscard]] bool inherited() const { return locks_.inherited(); }
  [[nodiscard]] RelayStats stats() const;
  void report(const Error& error) const;

 private:
  Result<void> take_part();
  Result<void> divide(const std::string& set, const std::stop_token& stop);
  Result<void> lead(const std::string& set);
  // Beside the engine: what is not urgent.
  void look_after(const std::string& set, const std::stop_token& stop);
  void look_for_other_modes(const std::string& set);
  [[nodiscard]] std::string set_name(const std::string& identity) const;

  LockClient locks_;
  const std::string url_;
  const RelayOptions options_;
  std::shared_ptr<Broker> broker_;
  std::unique_ptr<Engine> engine_;
  Retention retention_;
  Result<void> made_;
  std::stop_source stop_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool running_ = false;
  std::string set_;
  std::string mode_trouble_;
};

}  // namespace baton::relay
