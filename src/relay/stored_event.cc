#include "relay/stored_event.h"

#include <utility>

#include "event/headers.h"
#include "outbox/outbox_table.h"

namespace baton::relay {
namespace {

enum Column : std::uint8_t { kLane, kPosition, kXid, kAttempts, kBytes, kAddedAt, kEvent };

event::SentEvent event_of(sql::Row& row, std::size_t at, const StoredEvent& stored) {
  const auto text = [&](outbox::EventColumn column) { return row.take_text(at + kEvent + column); };
  event::SentEvent sent{.event = {.id = text(outbox::kEventId),
                                  .type = text(outbox::kType),
                                  .aggregate = text(outbox::kAggregateId),
                                  .aggregate_type = text(outbox::kAggregateType),
                                  .exchange = text(outbox::kExchange),
                                  .routing_key = text(outbox::kRoutingKey),
                                  .payload = text(outbox::kPayload),
                                  .correlation_id = text(outbox::kCorrelationId),
                                  .causation_id = text(outbox::kCausationId),
                                  .traceparent = text(outbox::kTraceparent)},
                        .lane = stored.lane,
                        .position = stored.row.position,
                        .occurred_at = event::WallTime(Millis(row.integer(at + kAddedAt)))};
  sent.event.version = static_cast<std::int32_t>(row.integer(at + kEvent + outbox::kVersion));
  // Headers that somebody else has written and that are none are left out: the event counts.
  if (const auto headers = text(outbox::kHeaders); headers != "{}") {
    if (auto parsed = event::parse_headers(headers)) sent.event.headers = std::move(*parsed);
  }
  return sent;
}

}  // namespace

std::string route_of(const std::string& exchange, const std::string& routing_key) {
  return exchange + '\n' + routing_key;
}

std::optional<StoredEvent> read_event(sql::Row& row, std::size_t at) {
  if (row.null(at + kPosition)) return {};
  StoredEvent stored;
  stored.lane = static_cast<int>(row.integer(at + kLane));
  stored.row = {.position = row.integer(at + kPosition),
                .xid = static_cast<Xid>(row.integer(at + kXid)),
                .aggregate = row.text(at + kEvent + outbox::kAggregateId),
                .route = route_of(row.text(at + kEvent + outbox::kExchange),
                                  row.text(at + kEvent + outbox::kRoutingKey)),
                .bytes = static_cast<std::size_t>(row.integer(at + kBytes)),
                .attempts = static_cast<int>(row.integer(at + kAttempts))};
  if (!row.null(at + kEvent + outbox::kPayload)) stored.event = event_of(row, at, stored);
  return stored;
}

}  // namespace baton::relay
