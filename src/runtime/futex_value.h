#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <ctime>

#include "baton/clock.h"

namespace baton::runtime {

// A number that one thread sets and many wait for, with one call of the kernel and no lock to queue
// for afterwards. std::atomic::wait would do, but libstdc++'s gives up the processor many times
// before it sleeps, which with many callers costs more than all the rest; a condition variable
// makes everybody who is woken take its mutex in turn.
class FutexValue {
 public:
  void set(std::uint32_t value) {
    value_.store(value, std::memory_order_release);
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  // Until it is another than `seen`, or the deadline has passed. Gives what it is then.
  std::uint32_t wait(std::uint32_t seen, const Clock& clock, Deadline deadline) {
    // The kernel knows neither CLOCK_BOOTTIME here nor the clock of a test: look at it again soon.
    constexpr std::chrono::nanoseconds kStep = std::chrono::milliseconds(100);
    for (;;) {
      const auto value = value_.load(std::memory_order_acquire);
      if (value != seen) return value;
      const std::chrono::nanoseconds left = std::min(deadline - clock.now(), kStep);
      if (left <= left.zero()) return value;
      const timespec timeout{.tv_sec = 0, .tv_nsec = left.count()};
      syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, seen, &timeout, nullptr, 0);
    }
  }

 private:
  std::atomic<std::uint32_t> value_{0};
  static_assert(sizeof(value_) == sizeof(std::uint32_t), "the kernel looks at the number itself");
};

}  // namespace baton::runtime
