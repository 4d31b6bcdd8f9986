#include <chrono>
#include <limits>
#include <utility>

#include "event/headers.h"
#include "eventlog/log_table.h"

namespace baton::eventlog {

Result<LoggedEvent> logged_event(const sql::Row& row) {
  auto headers = event::parse_headers(row.text(9));
  if (!headers) return headers.error();
  const auto created = std::chrono::milliseconds(row.integer(14));
  return LoggedEvent{.position = row.integer(0),
                     .stream_version = row.integer(1),
                     .event = {.id = row.text(3),
                               .type = row.text(4),
                               .aggregate = row.text(2),
                               .aggregate_type = row.text(5),
                               .exchange = row.text(6),
                               .routing_key = row.text(7),
                               .payload = row.text(8),
                               .headers = std::move(*headers),
                               .correlation_id = row.text(10),
                               .causation_id = row.text(11),
                               .traceparent = row.text(12),
                               .version = static_cast<std::int32_t>(row.integer(13))},
                     .appended_at = std::chrono::system_clock::time_point(
                         std::chrono::duration_cast<std::chrono::system_clock::duration>(created))};
}

Result<std::vector<LoggedEvent>> logged_events(const sql::Rows& rows) {
  std::vector<LoggedEvent> events;
  events.reserve(rows.size());
  for (const sql::Row& row : rows) {
    auto event = logged_event(row);
    if (!event) return event.error();
    events.push_back(std::move(*event));
  }
  return events;
}

}  // namespace baton::eventlog
