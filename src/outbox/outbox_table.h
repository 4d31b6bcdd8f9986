#pragma once

// Shared by all that read and write the tables of the outbox: add, relay, retention, `baton
// outbox`. The tables themselves are in postgres_tables.sql and sqlite_tables.sql.

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/clock.h"
#include "sql/schema.h"

namespace baton::outbox {

// Of the tables and functions. A database with a newer one is refused.
inline constexpr int kSchemaVersion = 1;

// outbox_events.status
namespace status {
inline constexpr std::string_view pending = "PENDING";
inline constexpr std::string_view sent = "SENT";
inline constexpr std::string_view failed = "FAILED";
inline constexpr std::string_view discarded = "DISCARDED";
}  // namespace status

// The columns of an event that are published, in the order of EventColumn.
inline constexpr std::string_view kEventColumns =
    "event_id, type, aggregate_type, aggregate_id, exchange, routing_key, payload, headers,"
    " correlation_id, causation_id, traceparent, version";
enum EventColumn : std::uint8_t {
  kEventId,
  kType,
  kAggregateType,
  kAggregateId,
  kExchange,
  kRoutingKey,
  kPayload,
  kHeaders,
  kCorrelationId,
  kCausationId,
  kTraceparent,
  kVersion,
  kEventColumnCount
};

// PostgreSQL: the channel of NOTIFY; the payload is the number of the lane.
inline constexpr std::string_view kWakeChannel = "baton_outbox";

// PostgreSQL: the first key of the advisory lock of a lane, whose second key is its number. add()
// takes it shared until the end of its transaction; a relay that sleeps holds it exclusively. It is
// the table's own number, so that outboxes in several schemas of a database do not disturb each
// other.
inline constexpr std::string_view kLockClass = "'outbox_events'::regclass::oid::int";

// The relay writes outbox_lane.updated_at at least this often for each lane that it reads, also if
// there is nothing to read. `baton outbox status` calls a lane unread if it is older than three of
// these.
inline constexpr Millis kLaneHeartbeat{10'000};

// SQLite: next_retry_at of events that wait for others; 'infinity' on PostgreSQL.
inline constexpr std::int64_t kSqliteInfinity = std::numeric_limits<std::int64_t>::max();

// PostgreSQL: the slots that days are put into in turn.
inline constexpr int kSlots = 8;

// Without the scripts, which differ.
[[nodiscard]] inline sql::Schema schema(std::vector<std::string_view> scripts = {}) {
  return {.name = "outbox",
          .version = kSchemaVersion,
          .install_command = "baton outbox install --database URL",
          .scripts = std::move(scripts)};
}

}  // namespace baton::outbox
