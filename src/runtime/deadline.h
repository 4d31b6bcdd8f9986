#pragma once

#include <algorithm>

#include "baton/clock.h"
#include "baton/store.h"

namespace baton::runtime {

// Whoever waits for ever says so with a number that no clock can add to its own.
[[nodiscard]] inline Deadline deadline_after(Instant now, Millis wait) {
  return now + std::clamp(wait, Millis(0), kMaxWait);
}

}  // namespace baton::runtime
