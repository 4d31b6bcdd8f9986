#pragma once

#include <vector>

#include "baton/broker.h"

namespace baton::broker {

// Findings about queues that are full, and about dead letters that nobody has settled.
[[nodiscard]] BATON_EXPORT std::vector<BrokerFinding> queue_findings(
    const Topology& topology, const std::vector<QueueInfo>& counted);

}  // namespace baton::broker
