#pragma once

// For the public functions that take an SQLite connection of the caller's.

#include "baton/export.h"
#include "baton/result.h"

struct sqlite3;

namespace baton::sql {

// An error unless the caller has begun a transaction.
[[nodiscard]] BATON_EXPORT Result<void> check_transaction(sqlite3* database);

}  // namespace baton::sql
