#pragma once

#include <chrono>
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
    if (now() < until) signal.wait_for(lock, std::chrono::milliseconds(1));
  }

 private:
  std::shared_ptr<ManualTime> time_;
};

}  // namespace baton::test
