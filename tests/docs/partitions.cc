#include "baton/partitions.h"
#include "baton/fence.h"

void begin(pg_conn* connection);
void rollback(pg_conn* connection);
void publish_next_batch(pg_conn* connection, std::size_t lane);
void commit(pg_conn* connection);

void partitions_example(pg_conn* connection, const std::stop_token& process_ends) {
#include "docs/partitions.md.1.inc"
}
