#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace baton::runtime {

// Opens once, for all who wait, with one call of the kernel and no lock to queue for afterwards.
// std::atomic::wait would do, but libstdc++'s gives up the processor many times before it sleeps,
// which with many callers costs more than all the rest; a condition variable makes everybody who is
// woken take its mutex in turn.
class Gate {
 public:
  void open() {
    open_.store(1, std::memory_order_release);
    syscall(SYS_futex, &open_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  void wait() {
    while (open_.load(std::memory_order_acquire) == 0) {
      syscall(SYS_futex, &open_, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
  }

 private:
  std::atomic<std::uint32_t> open_{0};
  static_assert(sizeof(open_) == sizeof(std::uint32_t), "the kernel looks at the number itself");
};

}  // namespace baton::runtime
