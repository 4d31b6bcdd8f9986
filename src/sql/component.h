#pragma once

// A set of tables and functions of ours in a database of the user's, as the outbox or the event
// log: how it is made, and what to say if it is not there. Its version is in its table
// {name}_version.

#include <string>
#include <string_view>
#include <vector>

#include "baton/export.h"
#include "baton/result.h"

struct pg_conn;  // PGconn of libpq
struct sqlite3;

namespace baton::sql {

struct Component {
  std::string_view name;   // the prefix of its tables: outbox
  std::string_view title;  // for people: the outbox
  int version = 1;         // of its tables and functions; a database with a newer one is refused
  std::string_view install_command;
  std::vector<std::string_view> postgres;  // scripts; $schema is where it is installed
  std::string_view sqlite;
};

[[nodiscard]] BATON_EXPORT Error not_installed(const Component& component, const std::string& what);
[[nodiscard]] BATON_EXPORT Error made_by_newer(const Component& component, std::int64_t version);

// Creates it or brings it up to date, inside the caller's transaction or in one of its own.
// PostgreSQL: in the first schema of the search path.
BATON_EXPORT Result<void> install(pg_conn* connection, const Component& component);
BATON_EXPORT Result<void> install(sqlite3* database, const Component& component);

// 0: it is not there.
[[nodiscard]] BATON_EXPORT Result<std::int64_t> installed_version(sqlite3* database,
                                                                  const Component& component);

}  // namespace baton::sql
