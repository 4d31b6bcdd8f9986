#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace baton::core {

// Doubles from `first` to `most`. `random` (any 64 bits) takes off up to half, so that many clients
// do not retry at the same moment.
class Backoff {
 public:
  using Millis = std::chrono::milliseconds;
  constexpr Backoff(Millis first, Millis most) : first_(first), most_(most), next_(first) {}

  [[nodiscard]] constexpr Millis next(std::uint64_t random) {
    const Millis full = next_;
    next_ = std::min(next_ * 2, most_);
    const auto half = static_cast<std::uint64_t>(full.count() / 2);
    return full - Millis(static_cast<std::int64_t>(half == 0 ? 0 : random % (half + 1)));
  }
  constexpr void reset() { next_ = first_; }

 private:
  Millis first_;
  Millis most_;
  Millis next_;
};

}  // namespace baton::core
