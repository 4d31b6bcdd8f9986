#include "observe/event_logging.h"

#include <utility>

namespace baton::observe {
namespace {

LogLevel level_of(ConsumerNote::Kind kind) {
  using Kind = ConsumerNote::Kind;
  switch (kind) {
    case Kind::received:
    case Kind::processed:
    case Kind::skipped:
    case Kind::held:
    case Kind::resumed:
    case Kind::breaker_closed: return LogLevel::info;
    case Kind::rejected:
    case Kind::kept:
    case Kind::paused:
    case Kind::broker_lost: return LogLevel::warn;
    case Kind::failed:
    case Kind::dead:
    case Kind::poison:
    case Kind::hook_failed:
    case Kind::breaker_opened: return LogLevel::error;
    case Kind::counted: break;
  }
  return LogLevel::debug;
}

}  // namespace

LogFields event_fields(const Event& event, const std::string& aggregate_key) {
  return {{"eventId", event.id},
          {"eventType", event.type},
          {"routingKey", event.routing_key},
          {"correlationId", event.correlation_id},
          {aggregate_key, event.aggregate}};
}

Consumer::Handler in_event_context(Consumer::Handler handler, std::string aggregate_key) {
  return [handler = std::move(handler), key = std::move(aggregate_key)](Handling& handling) {
    const LogScope context(event_fields(handling.event(), key));
    return handler(handling);
  };
}

void ConsumerLog::write(const ConsumerNote& note) const {
  if (note.kind == ConsumerNote::Kind::counted) return;
  LogFields fields;
  if (note.event != nullptr) fields = event_fields(*note.event, aggregate_key_);
  if (note.attempt > 0) fields.emplace_back("attempt", std::to_string(note.attempt));
  fields.emplace_back("reason", note.reason);
  log_.log(level_of(note.kind), note.message, fields);
}

void RelayLog::write(const RelayEvent& event) const {
  const auto about = [&](const char* status) {
    return LogFields{{"eventId", event.event_id},
                     {"eventType", event.type},
                     {"routingKey", event.routing_key},
                     {"correlationId", event.correlation_id},
                     {options_.aggregate_key, event.aggregate},
                     {"retryCount", std::to_string(event.attempts)},
                     {"status", status},
                     {"reason", event.why}};
  };
  const std::string lane = std::to_string(event.lane);
  switch (event.kind) {
    case RelayEvent::Kind::published:
      log_.log(options_.published, "OUTBOX_PUBLISH_SUCCESS", about("SENT"));
      break;
    case RelayEvent::Kind::returned: log_.error("OUTBOX_PUBLISH_FAIL", about("PENDING")); break;
    case RelayEvent::Kind::failed: log_.error("OUTBOX_PUBLISH_FAIL", about("FAILED")); break;
    case RelayEvent::Kind::refused: log_.debug("OUTBOX_PUBLISH_REFUSED", about("PENDING")); break;
    case RelayEvent::Kind::lane_taken: log_.info("LANE_TAKEN", {{"lane", lane}}); break;
    case RelayEvent::Kind::lane_left: log_.info("LANE_LEFT", {{"lane", lane}}); break;
    case RelayEvent::Kind::swept:
      log_.error("EVENTS_SWEPT", {{"lane", lane}, {"count", std::to_string(event.count)}});
      break;
    case RelayEvent::Kind::cleaned:
      log_.info("EVENTS_CLEANED", {{"count", std::to_string(event.count)}});
      break;
    case RelayEvent::Kind::recovered: log_.info("RELAY_RECOVERED"); break;
  }
}

void RelayLog::write(const Error& error) const {
  log_.warn("RELAY_TROUBLE", {{"reason", error.message}});
}

}  // namespace baton::observe
