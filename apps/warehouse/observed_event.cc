#include "apps/warehouse/observed_event.h"

#include "core/sha256.h"

namespace baton::warehouse {

std::string event_id_of(const ObserverType& type, const std::string& source_id) {
  const std::string hex = core::sha256(type.name + ":" + source_id);
  // A UUID of version 8, in the variant of RFC 9562.
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-8" + hex.substr(12, 3) + "-a" +
         hex.substr(15, 3) + "-" + hex.substr(18, 12);
}

std::string aggregate_of(const ObserverType& type, const std::string& source_id) {
  return check_event({.type = type.event, .aggregate = source_id}) ? source_id
                                                                   : event_id_of(type, source_id);
}

Event event_of(const Poll& poll, const Observer& observer, const SourceRow& row) {
  return {.id = event_id_of(poll.type, row.position.id),
          .type = poll.type.event,
          .aggregate = aggregate_of(poll.type, row.position.id),
          .aggregate_type = poll.type.name,
          .exchange = kExchange,
          .routing_key = poll.type.name + ".observed",
          .payload = row.payload,
          .headers = {{"observer", observer.name},
                      {"node", poll.node},
                      {"token", std::to_string(poll.guard.token())}}};
}

Topology topology() {
  return {.exchanges = {{.name = kExchange}},
          .queues = {{.name = kCountQueue}},
          .bindings = {{.exchange = kExchange, .pattern = "*.observed", .queue = kCountQueue}}};
}

}  // namespace baton::warehouse
