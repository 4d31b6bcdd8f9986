#include "baton/inbox.h"
#include "inbox/inbox_table.h"
#include "inbox/postgres_tables.sql.h"

namespace baton {

Result<void> install_inbox(pg_conn* connection) {
  return sql::install(connection, inbox::schema({embedded::inbox::postgres_tables_sql}));
}

}  // namespace baton
