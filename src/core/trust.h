#pragma once

#include <algorithm>
#include <chrono>

#include "baton/clock.h"

namespace baton::core {

// A holder stops trusting its lease this long before the lease expires in the store. The margin
// covers a client clock that runs slower than the store's, and a stop token that is noticed late.
constexpr Millis margin(Millis ttl) { return std::max(ttl / 10, Millis(250)); }

// Counted from before the request was sent: the store starts the TTL after that, never before.
// Counted from the reply, the lease would be trusted for a round trip too long.
constexpr Instant trusted_until(Instant sent, Millis ttl) { return sent + ttl - margin(ttl); }

// A lease is renewed after a third of its ttl, which leaves time for two more tries.
constexpr Millis renew_after(Millis ttl) { return ttl / 3; }

// How long a place in the queue is kept, and how long a promoted waiter may take to claim. Together
// they are below one TTL, so that a process that dies with hundreds of waiters delays the next
// waiter by no more than that.
constexpr Millis queue_ttl_for(Millis ttl) {
  return std::clamp(ttl / 2, Millis(200), Millis(15'000));
}
constexpr Millis claim_within_for(Millis ttl) {
  return std::clamp(ttl / 5, Millis(100), Millis(3'000));
}

}  // namespace baton::core
