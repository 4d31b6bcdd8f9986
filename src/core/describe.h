#pragma once

#include "core/lock_table.h"

namespace baton::core {

// A holder as it is shown to people and to who is kept out by it.
[[nodiscard]] HolderInfo show(const Holder& holder, StoreTime now);

// What is left, in whole milliseconds, never too few.
[[nodiscard]] Millis millis_up(StoreTime time);

}  // namespace baton::core
