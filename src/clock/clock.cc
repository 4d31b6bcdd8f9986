#include "baton/clock.h"

#include <ctime>

namespace baton {

BootClock::time_point BootClock::now() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return time_point(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Instant now() const override { return BootClock::now(); }

  // Condition variables cannot wait on CLOCK_BOOTTIME. A suspend in the middle makes this return
  // late by its length, so waits are cut to a second: callers loop and see the boot clock again.
  void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal,
            Instant until) override {
    const auto left = until - now();
    if (left <= left.zero()) return;
    const auto step = std::min<std::chrono::nanoseconds>(left, std::chrono::seconds(1));
    signal.wait_until(lock, std::chrono::steady_clock::now() + step);
  }
};

}  // namespace

Clock& system_clock() {
  static SystemClock clock;
  return clock;
}

}  // namespace baton
