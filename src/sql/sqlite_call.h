#pragma once

// For the public functions that take an SQLite connection of the caller's.

#include <functional>

#include "baton/export.h"
#include "baton/result.h"

struct sqlite3;

namespace baton::sql {

// Inside a transaction of the caller or, begun with `begin`, in one of its own: all of `body` or
// nothing.
BATON_EXPORT Result<void> all_or_nothing(sqlite3* database, const char* begin,
                                         const std::function<Result<void>()>& body);

// An error unless the caller has begun a transaction.
[[nodiscard]] BATON_EXPORT Result<void> check_transaction(sqlite3* database);

}  // namespace baton::sql
