#pragma once

#include <algorithm>

#include "baton/clock.h"
#include "baton/store.h"

namespace baton::runtime {

// Clamps the wait, so that Millis::max() does not overflow the clock.
[[nodiscard]] inline Deadline deadline_after(Instant now, Millis wait) {
  return now + std::clamp(wait, Millis(0), kMaxWait);
}

}  // namespace baton::runtime
