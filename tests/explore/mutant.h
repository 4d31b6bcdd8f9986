#pragma once

#include "explore/explorer.h"

namespace baton::explore {

// Of the exploration that a mutant's test is linked with: mutant_locks.cc or mutant_partitions.cc.
[[nodiscard]] Report first_finding();

}  // namespace baton::explore
