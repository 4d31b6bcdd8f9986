#pragma once

// The exchange and queues of the tests of events: one queue for a consumer, one for a spy.

#include <string_view>

#include "baton/broker.h"

namespace baton::test {

inline constexpr std::string_view kEventExchange = "shop";
inline constexpr std::string_view kCounterQueue = "counter.q";
inline constexpr std::string_view kSpyQueue = "spy.q";

inline Topology event_topology() {
  Topology topology;
  topology.exchanges = {{.name = std::string(kEventExchange)}};
  for (const std::string_view queue : {kCounterQueue, kSpyQueue}) {
    topology.queues.push_back({.name = std::string(queue)});
    topology.bindings.push_back(
        {.exchange = std::string(kEventExchange), .pattern = "#", .queue = std::string(queue)});
  }
  return topology;
}

}  // namespace baton::test
