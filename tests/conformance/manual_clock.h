#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

#include "baton/clock.h"
#include "conformance/harness.h"

namespace baton::test {

// The client's clock and the store's show the same time, and both only move when told.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::shared_ptr<ManualTime> time) : time_(std::move(time)) {}
  [[nodiscard]] Instant now() const override { return Instant(time_->now()); }
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal,
            Instant until) override {
    ++waits_;
    if (now() < until) signal.wait_for(lock, std::chrono::milliseconds(1));
  }

  // How often somebody has waited. Who waits looks at the time in between: after two more waits the
  // time of now has been seen, and it was not enough.
  [[nodiscard]] std::uint64_t waits() const { return waits_; }

 private:
  std::shared_ptr<ManualTime> time_;
  std::atomic<std::uint64_t> waits_{0};
};

}  // namespace baton::test
