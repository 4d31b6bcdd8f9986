#pragma once

#include <algorithm>
#include <chrono>

#include "baton/clock.h"

namespace baton::core {

// A holder believes in its lease until this long before the store would give it away. It pays for
// the client's clock running slower than the store's, and for the stop token being heard late.
constexpr Millis margin(Millis ttl) { return std::max(ttl / 10, Millis(250)); }

// Counted from before the request was sent: the store started the ttl later than that, never
// earlier. Counting from the reply would trust the lease for a round trip too long.
constexpr Instant trusted_until(Instant sent, Millis ttl) { return sent + ttl - margin(ttl); }

// A lease is renewed after a third of its ttl, which leaves time for two more tries.
constexpr Millis renew_after(Millis ttl) { return ttl / 3; }

// A place in the queue, and the time to come for a promotion: together below one ttl, so that a
// process that dies with hundreds of waiters delays the next one by no more than that.
constexpr Millis queue_ttl_for(Millis ttl) {
  return std::clamp(ttl / 2, Millis(200), Millis(15'000));
}
constexpr Millis claim_within_for(Millis ttl) {
  return std::clamp(ttl / 5, Millis(100), Millis(3'000));
}

}  // namespace baton::core
