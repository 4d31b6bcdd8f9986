#include "baton/outbox.h"

void begin(pg_conn* connection);
void rollback(pg_conn* connection);
void insert_order(pg_conn* connection, const std::string& id);
void commit(pg_conn* connection);

void events_example(pg_conn* connection, const std::string& id) {
#include "docs/events.md.3.inc"
}
