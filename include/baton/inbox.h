#pragma once

// The inbox: two tables in a service's own database that its consumers (baton/consumer.h) need.
// processed_events is the ledger of the events that were decided about, inbox_events keeps the
// messages in trouble: those to be tried again, and the dead letters.

#include "baton/export.h"
#include "baton/result.h"

struct pg_conn;  // PGconn of libpq
struct sqlite3;

namespace baton {

// Creates the tables, or brings them up to date; harmless to repeat. Needs the right to create
// tables. PostgreSQL: in the first schema of the search path. `bad_store`: made by a newer Baton.
BATON_EXPORT Result<void> install_inbox(pg_conn* connection);
BATON_EXPORT Result<void> install_inbox(sqlite3* database);

}  // namespace baton
