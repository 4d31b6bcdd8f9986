#pragma once

#include <vector>

#include "harness/slices.h"

namespace baton::bench {

// The least that a lock in Redis costs: two scripts a pair, SET NX PX with INCR of a token, and
// compare-and-delete, each a round trip. One hiredis connection a caller.
[[nodiscard]] std::vector<Step> redis_floor(int port, int count, int names_each);

}  // namespace baton::bench
