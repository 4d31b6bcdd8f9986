#include "baton/elector.h"
#include "baton/fence.h"

void begin(pg_conn* connection);
void rollback(pg_conn* connection);
void publish_next_batch(pg_conn* connection);
void commit(pg_conn* connection);

void election_example(pg_conn* connection, const std::stop_token& process_ends) {
#include "docs/election.md.1.inc"
}

void fence_first_example(pg_conn* connection) {
#include "docs/fencing.md.1.inc"
}
