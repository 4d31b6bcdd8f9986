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

// A number that one thread sets and many threads wait for. Waking all of them is one system call,
// and they need no lock afterwards: a condition variable would make every woken thread take its
// mutex in turn. std::atomic::wait would do, but libstdc++'s yields the processor many times before
// it sleeps, which with many callers costs more than everything else.
class FutexValue {
 public:
  void set(std::uint32_t value) {
    value_.store(value, std::memory_order_release);
    syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }

  // Waits until the value differs from `seen` or the deadline has passed. Returns the value.
  std::uint32_t wait(std::uint32_t seen, const Clock& clock, Deadline deadline) {
    // A futex takes neither CLOCK_BOOTTIME nor a test's clock, so check the clock in short steps.
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
  static_assert(sizeof(value_) == sizeof(std::uint32_t), "a futex is a plain 32-bit number");
};

}  // namespace baton::runtime
