#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace baton::relay {

// Ends a wait on file descriptors from another thread.
class Interrupt {
 public:
  Interrupt() : file_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Interrupt() {
    if (file_ >= 0) ::close(file_);
  }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] int file() const { return file_; }
  void raise() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(file_, &one, sizeof one);
  }
  void clear() const {
    std::uint64_t any = 0;
    [[maybe_unused]] const auto size = ::read(file_, &any, sizeof any);
  }

 private:
  int file_;
};

}  // namespace baton::relay
