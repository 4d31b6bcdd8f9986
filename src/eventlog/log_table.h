#pragma once

// Shared by all that read and write the tables of the event log. The tables themselves are in
// postgres_tables.sql and sqlite_tables.sql.

#include <string_view>
#include <utility>
#include <vector>

#include "baton/event_log.h"
#include "sql/schema.h"
#include "sql/value.h"

namespace baton::eventlog {

// Without the scripts, which differ.
[[nodiscard]] inline sql::Schema schema(std::vector<std::string_view> scripts = {}) {
  return {.name = "event_log",
          .version = 1,
          .install_command = "baton processor install --database URL",
          .scripts = std::move(scripts)};
}

// In the order in which logged_event() takes them; created_at is in milliseconds since 1970.
inline constexpr std::string_view kPostgresColumns =
    "position, stream_version, stream, event_id, type, aggregate_type, exchange, routing_key,"
    " payload, headers, correlation_id, causation_id, traceparent, version,"
    " (extract(epoch FROM created_at) * 1000)::bigint";
inline constexpr std::string_view kSqliteColumns =
    "position, stream_version, stream, event_id, type, aggregate_type, exchange, routing_key,"
    " payload, headers, correlation_id, causation_id, traceparent, version, created_at";

[[nodiscard]] Result<LoggedEvent> logged_event(const sql::Row& row);
[[nodiscard]] Result<std::vector<LoggedEvent>> logged_events(const sql::Rows& rows);

}  // namespace baton::eventlog
