#pragma once

#include <optional>

#include "outbox/outbox_table.h"
#include "relay/lane_tables.h"
#include "sql/value.h"

namespace baton::relay {

// A row of look.sql, page.sql or fetch.sql, from its column `at` on: lane, position, xid, attempts,
// bytes, when it was added, and then outbox::kEventColumns. Nothing if the row has no position;
// else the row is moved from.
struct StoredRow {
  int lane = 0;
  Row row;
  std::optional<StoredEvent> event;  // if the payload was read
};

inline constexpr std::size_t kStoredColumns = 6 + outbox::kEventColumnCount;

[[nodiscard]] std::optional<StoredRow> read_row(sql::Row& row, std::size_t at);

// The route of a message: the unit that backs off when a queue is full.
[[nodiscard]] std::string route_of(const std::string& exchange, const std::string& routing_key);

}  // namespace baton::relay
