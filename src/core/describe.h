#pragma once

#include "core/lock_table.h"

namespace baton::core {

// A holder as it is shown to people and to the clients that it keeps out.
[[nodiscard]] HolderInfo show(const Holder& holder, StoreTime now);

// Rounded up to whole milliseconds.
[[nodiscard]] Millis millis_up(StoreTime time);

}  // namespace baton::core
