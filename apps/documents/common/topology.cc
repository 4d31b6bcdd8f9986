#include "apps/documents/common/topology.h"

#include <string>

#include "baton/event.h"

namespace baton::documents {

Topology documents_topology() {
  const std::string validated = routing_key_of(type::validated);
  const std::string rejected = routing_key_of(type::rejected);
  const std::string enriched = routing_key_of(type::enriched);
  const std::string failed = routing_key_of(type::failed);
  const struct {
    std::string_view queue;
    std::vector<std::string> patterns;
  } wanted[] = {
      {queue::status, {validated, rejected, enriched, failed}},
      {queue::uploaded, {routing_key_of(type::uploaded)}},
      {queue::validated, {validated}},
      {queue::audit, {"document.*"}},
      {queue::notification, {validated, rejected, enriched, failed}},
  };
  Topology topology{.exchanges = {{.name = std::string(kExchange)}}};
  for (const auto& [queue, patterns] : wanted) {
    topology.queues.push_back({.name = std::string(queue)});
    for (const std::string& pattern : patterns) {
      topology.bindings.push_back(
          {.exchange = std::string(kExchange), .pattern = pattern, .queue = std::string(queue)});
    }
  }
  return topology;
}

}  // namespace baton::documents
