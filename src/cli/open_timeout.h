#pragma once

#include <algorithm>
#include <optional>

#include "baton/clock.h"

namespace baton::cli {

// How long the store may take to open: 5 s, or what is left of the --wait or --timeout that limits
// the command. At least a second, so that a short limit still finds a store that is up.
[[nodiscard]] inline Millis open_timeout(std::optional<Millis> left = {}) {
  constexpr Millis kLeast{1'000};
  constexpr Millis kMost{5'000};
  return std::clamp(left.value_or(kMost), kLeast, kMost);
}

[[nodiscard]] inline Millis left_until(Instant limit) {
  return std::max(Millis(0), std::chrono::floor<Millis>(limit - BootClock::now()));
}

}  // namespace baton::cli
