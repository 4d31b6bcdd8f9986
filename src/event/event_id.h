#pragma once

// UUIDs of version 7 (RFC 9562): 48 bits of milliseconds and 12 bits of their fraction, here one
// number called a tick, then 62 random bits.

#include <cstdint>
#include <string>

#include "baton/export.h"

namespace baton::event {

// Since 1970, in 1/4096 ms.
using Tick = std::uint64_t;

[[nodiscard]] BATON_EXPORT Tick tick_of(std::int64_t nanoseconds_since_1970);

// The tick of the id that follows one with `last`: later than that, even if the clock was set back
// or many ids are made in one tick.
[[nodiscard]] BATON_EXPORT Tick next_tick(Tick last, Tick now);

// Takes the lower 62 bits of `random`.
[[nodiscard]] BATON_EXPORT std::string format_event_id(Tick tick, std::uint64_t random);

}  // namespace baton::event
