#pragma once

#include <cstdint>
#include <stdexcept>

#include <sys/eventfd.h>
#include <unistd.h>

namespace baton::store {

// Ends the poll(2) of another thread. Thread-safe.
class WakeEvent {
 public:
  WakeEvent() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (file_ < 0) throw std::runtime_error("eventfd failed");
  }
  ~WakeEvent() { close(file_); }
  WakeEvent(const WakeEvent&) = delete;
  WakeEvent& operator=(const WakeEvent&) = delete;

  [[nodiscard]] int file() const { return file_; }  // to be polled for POLLIN
  void signal() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(file_, &one, sizeof one);
  }
  void clear() {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto drained = read(file_, &count, sizeof count);
  }

 private:
  int file_;
};

}  // namespace baton::store
