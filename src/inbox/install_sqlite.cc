#include "baton/inbox.h"
#include "inbox/inbox_table.h"
#include "inbox/sqlite_tables.sql.h"

namespace baton {

Result<void> install_inbox(sqlite3* database) {
  return sql::install(database, inbox::schema({embedded::inbox::sqlite_tables_sql}));
}

}  // namespace baton
