#pragma once

#include <utility>

#include "store/postgres/connection.h"

namespace baton::store::postgres {

// The version of the tables and functions that this binary knows.
inline constexpr int kSchemaVersion = 1;

// 0 if there is no schema.
Result<int> schema_version(Connection& connection, const Settings& settings, Deadline deadline);

// Fails, saying what to do, unless the schema is the one this binary knows and the role may use it.
Result<void> check_schema(Connection& connection, const Settings& settings, Deadline deadline);

// Gives the version found and the version left. One at a time, whoever else tries.
Result<std::pair<int, int>> migrate(Connection& connection, const Settings& settings,
                                    Deadline deadline);

}  // namespace baton::store::postgres
