#include "baton/locks.h"
#include "baton/processors.h"

void add_to(pg_conn* connection, const std::string& table, const baton::LoggedEvent& logged);

void event_log_example(const std::stop_token& process_ends) {
#include "docs/event-log.md.1.inc"
}
