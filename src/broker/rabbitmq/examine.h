#pragma once

#include <optional>
#include <string>
#include <vector>

#include "baton/broker.h"
#include "broker/rabbitmq/settings.h"

namespace baton::broker::rabbitmq {

// The facts about a server that were found out.
struct Facts {
  std::string product;
  std::string version;
  std::optional<std::string> alarm;  // empty: none; nothing: not visible
  std::vector<QueueInfo> queues;
};

// Findings about everything that endangers messages, apart from the topology itself.
[[nodiscard]] BATON_EXPORT std::vector<BrokerFinding> examine(const Settings& settings,
                                                              const Topology& topology,
                                                              const Facts& facts);

}  // namespace baton::broker::rabbitmq
