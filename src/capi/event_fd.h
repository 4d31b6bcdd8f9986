#pragma once

// A descriptor for poll() that becomes readable once, and stays so. Thread-safe.

#include <sys/eventfd.h>
#include <unistd.h>

#include "baton/result.h"

namespace baton::capi {

class EventFd {
 public:
  EventFd() = default;
  ~EventFd() {
    if (fd_ >= 0) close(fd_);
  }
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  // An error if this process has too many descriptors.
  Result<void> open() {
    if (fd_ < 0) fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd_ >= 0) return {};
    return Error{.code = Code::unavailable,
                 .message = "no descriptor can be opened: this process has too many",
                 .retryable = true};
  }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  [[nodiscard]] int fd() const { return fd_; }

  void fire() const noexcept {
    if (fd_ >= 0) (void)eventfd_write(fd_, 1);
  }
  void reset() const noexcept {
    eventfd_t count = 0;
    if (fd_ >= 0) (void)eventfd_read(fd_, &count);
  }

 private:
  int fd_ = -1;
};

}  // namespace baton::capi
