#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "baton/export.h"

namespace baton {

using Millis = std::chrono::milliseconds;

// CLOCK_BOOTTIME: runs on through suspend, unlike steady_clock, and never steps, unlike
// system_clock. All trust in a lease is counted on it.
struct BATON_EXPORT BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

using Instant = BootClock::time_point;

// An instant past which a call must have returned.
using Deadline = Instant;

// Both now and waiting are taken from here, so that a test moves time instead of sleeping.
class BATON_EXPORT Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual Instant now() const = 0;

  // Blocks on `signal` until it is notified or `until` is reached (or spuriously): callers loop.
  virtual void wait(std::unique_lock<std::mutex>& lock, std::condition_variable& signal,
                    Instant until) = 0;
};

// The machine's own clock; lives for ever.
[[nodiscard]] BATON_EXPORT Clock& system_clock();

}  // namespace baton
