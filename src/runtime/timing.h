#pragma once

#include "baton/store.h"

namespace baton::runtime {

// How often one that waits asks again, whatever the store suggests.
inline constexpr Millis kAskEvery{1000};
inline constexpr Millis kAskFloor{20};

// For what is left to say when a client closes.
inline constexpr Millis kCloseTimeout{2000};

}  // namespace baton::runtime
