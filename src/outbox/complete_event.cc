#include "outbox/complete_event.h"

#include "core/bad_request.h"
#include "event/headers.h"

namespace baton::outbox {

Result<CompleteEvent> complete(const Event& event, const OutboxOptions& options) {
  if (auto ok = check_event(event); !ok) return ok.error();
  if (event.exchange.empty() && !options.exchange.empty()) {
    const Event any{.type = "Any", .aggregate = "any", .exchange = options.exchange};
    if (auto ok = check_event(any); !ok) return ok.error();
  }
  return CompleteEvent{
      .event = &event,
      .id = event.id.empty() ? make_event_id() : event.id,
      .exchange = event.exchange.empty() ? options.exchange : event.exchange,
      .routing_key = event.routing_key.empty() ? routing_key_of(event.type) : event.routing_key,
      .headers = event::print_headers(event.headers)};
}

Result<CompleteEvent> complete_to_publish(const Event& event, const OutboxOptions& options) {
  auto row = complete(event, options);
  // A relay could only try it until it has failed.
  if (row && row->exchange.empty()) {
    return bad_request(
        "an event needs an exchange, where it is published: name one in the event or in "
        "OutboxOptions");
  }
  return row;
}

}  // namespace baton::outbox
