#pragma once

#include <string>

#include "harness/slices.h"

namespace baton::bench {

// The least that a lock in an SQLite file costs: BEGIN IMMEDIATE, one update, COMMIT, for the
// acquire with synchronous=FULL and for the release with NORMAL, in one connection.
[[nodiscard]] Step sqlite_floor(const std::string& path, int names);

}  // namespace baton::bench
