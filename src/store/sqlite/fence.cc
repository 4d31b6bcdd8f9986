#include "baton/fence.h"

#include <cstdint>
#include <limits>
#include <string>

#include <sqlite3.h>

#include "store/sqlite/database.h"
#include "store/sqlite/fence.sql.h"
#include "store/sqlite/fence_check.sql.h"
#include "store/sqlite/fence_granted.sql.h"

namespace baton {
namespace {

using store::sqlite::Rewind;
using store::sqlite::Statement;

Error overtaken(std::string_view key, Token token) {
  return {.code = Code::fenced,
          .message = "token " + std::to_string(token) + " of '" + std::string(key) +
                     "' has been overtaken by a newer holder: roll back"};
}

// Whether the statement gives a row.
template <typename... Values>
Result<bool> any(sqlite3* database, std::string_view sql, const Values&... values) {
  auto statement = Statement::prepare(database, sql);
  if (!statement) return statement.error();
  auto row = statement->start(values...).step();
  if (!row || !*row) return row;
  // To its end, so that a change is complete whatever the version of SQLite makes of half a run.
  if (auto finished = statement->run(); !finished) return finished.error();
  return true;
}

Result<bool> has_table(sqlite3* database, std::string_view name) {
  return any(database, "SELECT 1 FROM main.sqlite_schema WHERE type = 'table' AND name = ?1", name);
}

}  // namespace

Result<void> install_fence(sqlite3* database) {
  auto statement = Statement::prepare(database, embedded::store_sqlite::fence_sql);
  if (!statement) return statement.error();
  return statement->run();
}

Result<void> fence(sqlite3* database, std::string_view key, Mode mode, Token token) {
  if (sqlite3_get_autocommit(database) != 0) {
    return Error{.code = Code::bad_request,
                 .message = "a fence holds only inside a transaction: BEGIN IMMEDIATE first"};
  }
  if (key.empty() || token == 0 || token > std::numeric_limits<std::int64_t>::max()) {
    return Error{.code = Code::bad_request, .message = "a fence needs a name and a token"};
  }
  auto installed = has_table(database, "baton_fence");
  if (!installed) return installed.error();
  if (!*installed) {
    return Error{.code = Code::bad_store,
                 .message = "this database has no fence: call install_fence once"};
  }
  const auto number = static_cast<std::int64_t>(token);
  auto passed =
      any(database, embedded::store_sqlite::fence_check_sql, key, short_name(mode), number);
  if (!passed) return passed.error();
  if (!*passed) return overtaken(key, token);
  auto locks_here = has_table(database, "baton_lock");
  if (!locks_here) return locks_here.error();
  if (!*locks_here) return {};
  auto granted =
      any(database, embedded::store_sqlite::fence_granted_sql, key, short_name(mode), number);
  if (!granted) return granted.error();
  if (*granted) return overtaken(key, token);
  return {};
}

Result<Token> highest_fenced(sqlite3* database) {
  auto statement = Statement::prepare(
      database,
      "SELECT coalesce(max(max(is_token, ix_token, s_token, u_token, six_token, x_token)), 0)"
      " FROM baton_fence");
  if (!statement) return statement.error();
  const Rewind rewind(*statement);
  auto row = statement->step();
  if (!row) return row.error();
  return static_cast<Token>(statement->integer(0));
}

}  // namespace baton
