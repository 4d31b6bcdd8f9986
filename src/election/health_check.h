#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "baton/elector.h"

namespace baton::election {

// Whether this replica is fit to lead: asks ElectorOptions::healthy again and again. One thread
// runs the check, a second one notices when it takes too long.
class HealthCheck {
 public:
  // `changed` is called on a thread of ours after each change of fit().
  HealthCheck(const ElectorOptions& options, Clock& clock, std::function<void()> changed);
  ~HealthCheck() { stop(); }
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;

  void start();
  void stop();  // waits for a check that is under way

  // Without a check always; with one, from its first good answer on.
  [[nodiscard]] bool fit() const { return fit_; }

 private:
  [[nodiscard]] Millis interval() const;
  [[nodiscard]] Result<void> ask() const;
  void check_again_and_again(const std::stop_token& stop);
  void watch_for_overdue(const std::stop_token& stop);
  void conclude(std::unique_lock<std::mutex>& lock, const Result<void>& answer);

  const ElectorOptions& options_;
  Clock& clock_;
  const std::function<void()> changed_;
  std::atomic<bool> fit_;
  std::mutex mutex_;
  std::condition_variable signal_;
  std::optional<Instant> overdue_at_;  // of the check under way, unless that was noticed already
  bool told_ = false;                  // on_error, of the sickness that lasts
  std::jthread checker_;
  std::jthread watch_;
};

}  // namespace baton::election
