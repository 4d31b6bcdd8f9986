#include "relay/stored_event.h"

#include <utility>

#include "event/headers.h"
#include "outbox/outbox_table.h"

namespace baton::relay {
namespace {

enum Column : std::uint8_t { kLane, kPosition, kXid, kAttempts, kBytes, kAddedAt, kEvent };

}  // namespace

event::SentEvent StoredEvent::event() const {
  const auto text = [&](outbox::EventColumn column) { return row_.text(at_ + kEvent + column); };
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
                        .lane = static_cast<int>(row_.integer(at_ + kLane)),
                        .position = row_.integer(at_ + kPosition),
                        .occurred_at = event::WallTime(Millis(row_.integer(at_ + kAddedAt)))};
  sent.event.version = static_cast<std::int32_t>(row_.integer(at_ + kEvent + outbox::kVersion));
  // Headers that somebody else has written and that are none are left out: the event counts.
  if (const auto headers = text(outbox::kHeaders); headers != "{}") {
    if (auto parsed = event::parse_headers(headers)) sent.event.headers = std::move(*parsed);
  }
  return sent;
}

std::string route_of(const std::string& exchange, const std::string& routing_key) {
  return exchange + '\n' + routing_key;
}

std::optional<StoredRow> read_row(sql::Row& row, std::size_t at) {
  if (row.null(at + kPosition)) return {};
  StoredRow stored;
  stored.lane = static_cast<int>(row.integer(at + kLane));
  stored.row = {.position = row.integer(at + kPosition),
                .xid = static_cast<Xid>(row.integer(at + kXid)),
                .aggregate = row.text(at + kEvent + outbox::kAggregateId),
                .route = route_of(row.text(at + kEvent + outbox::kExchange),
                                  row.text(at + kEvent + outbox::kRoutingKey)),
                .bytes = static_cast<std::size_t>(row.integer(at + kBytes)),
                .attempts = static_cast<int>(row.integer(at + kAttempts))};
  if (!row.null(at + kEvent + outbox::kPayload)) {
    stored.event.emplace(std::move(row), at, stored.row.bytes);
  }
  return stored;
}

}  // namespace baton::relay
