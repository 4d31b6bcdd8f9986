#include "baton/fence.h"

#include <span>
#include <string>

#include <sqlite3.h>

#include "core/fence.h"
#include "store/sqlite/database.h"
#include "store/sqlite/fence.sql.h"
#include "store/sqlite/fence_check.sql.h"
#include "store/sqlite/fence_granted.sql.h"

namespace baton {
namespace {

using store::sqlite::Rewind;
using store::sqlite::Statement;

Error overtaken(std::span<const FenceToken> tokens) {
  const std::string others =
      tokens.size() == 1 ? "" : ", or one of the " + std::to_string(tokens.size() - 1) + " others,";
  return {.code = Code::fenced,
          .message = "token " + std::to_string(tokens[0].token) + " of '" + tokens[0].key + "'" +
                     others + " has been overtaken by a newer holder: roll back"};
}

// A transaction that has read before is bound to what it saw then.
Error explained(sqlite3* database, Error error) {
  if (sqlite3_extended_errcode(database) == SQLITE_BUSY_SNAPSHOT) {
    error.message =
        "others have written since this transaction first read: roll back and repeat all of it, "
        "with BEGIN IMMEDIATE";
  }
  return error;
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

// The check comes first, also before the look whether there is a fence: in a deferred transaction
// that has read nothing yet, a statement that writes waits for other writers, and one that follows
// a look would fail.
Result<void> fence(sqlite3* database, std::span<const FenceToken> tokens) {
  const auto ordered = core::in_fence_order(tokens);
  if (!ordered) return ordered.error();
  if (sqlite3_get_autocommit(database) != 0) {
    return Error{.code = Code::bad_request,
                 .message = "a fence holds only inside a transaction: BEGIN IMMEDIATE first"};
  }
  const std::string lease = print_fence_tokens(*ordered);
  auto passed = any(database, embedded::store_sqlite::fence_check_sql, lease);
  if (!passed) {
    Error error = explained(database, passed.error());
    if (error.retryable) return error;
    auto installed = has_table(database, "baton_fence");
    if (!installed || *installed) return error;
    return Error{.code = Code::bad_store,
                 .message = "this database has no fence: call install_fence once"};
  }
  if (!*passed) return overtaken(*ordered);
  auto locks_here = has_table(database, "baton_lock");
  if (!locks_here) return locks_here.error();
  if (!*locks_here) return {};
  auto granted = any(database, embedded::store_sqlite::fence_granted_sql, lease);
  if (!granted) return granted.error();
  if (*granted) return overtaken(*ordered);
  return {};
}

Result<void> fence_alone(sqlite3* database, std::span<const FenceToken> tokens) {
  const auto execute = [&](const char* sql) -> Result<void> {
    auto statement = Statement::prepare(database, sql);
    return statement ? statement->run() : statement.error();
  };
  if (auto begun = execute("BEGIN IMMEDIATE"); !begun) return begun;
  auto passed = fence(database, tokens);
  if (passed) passed = execute("COMMIT");
  if (!passed) (void)execute("ROLLBACK");
  return passed;
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
