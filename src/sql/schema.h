#pragma once

// Tables that a component of Baton keeps in a database of the user: who made them, and installing
// them on a connection of the user.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/export.h"
#include "baton/result.h"

struct pg_conn;  // PGconn of libpq
struct sqlite3;

namespace baton::sql {

struct Schema {
  std::string_view name;  // "outbox": for messages; its version is in the table outbox_version
  int version;            // a database with a newer one is refused
  std::string_view install_command;       // for messages
  std::vector<std::string_view> scripts;  // make it; on PostgreSQL, $schema is where

  [[nodiscard]] std::string version_table() const { return std::string(name) + "_version"; }
};

// `bad_store`, with what an operator can do.
[[nodiscard]] BATON_EXPORT Error not_installed(const Schema& schema, const std::string& what);
[[nodiscard]] BATON_EXPORT Error made_by_newer(const Schema& schema, std::int64_t version);

// Runs the scripts unless the schema is there; all of it or nothing. Harmless to repeat, also by
// several at once. Inside a transaction of the caller or outside of any. PostgreSQL: in the first
// schema of the search path.
BATON_EXPORT Result<void> install(pg_conn* connection, const Schema& schema);
BATON_EXPORT Result<void> install(sqlite3* database, const Schema& schema);

// 0: it is not there.
BATON_EXPORT Result<std::int64_t> installed_version(sqlite3* database, const Schema& schema);

// Inside a transaction of the caller or in one that begins with `begin`: all of `body` or nothing.
BATON_EXPORT Result<void> all_or_nothing(sqlite3* database, const char* begin,
                                         const std::function<Result<void>()>& body);

}  // namespace baton::sql
