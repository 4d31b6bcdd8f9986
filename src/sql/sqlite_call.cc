#include "sql/sqlite_call.h"

#include <sqlite3.h>

#include "core/bad_request.h"

namespace baton::sql {

Result<void> check_transaction(sqlite3* database) {
  if (database == nullptr) return bad_request("no database was given");
  if (sqlite3_get_autocommit(database) == 0) return {};
  return bad_request(
      "an event belongs into the transaction that makes it true: BEGIN IMMEDIATE first");
}

}  // namespace baton::sql
