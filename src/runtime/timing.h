#pragma once

#include "baton/store.h"

namespace baton::runtime {

// A waiter asks again within these limits, whatever retry_after the store suggests.
inline constexpr Millis kAskEvery{1000};
inline constexpr Millis kAskFloor{20};

// How long closing a client may take, for the requests that are still to be sent.
inline constexpr Millis kCloseTimeout{2000};

}  // namespace baton::runtime
