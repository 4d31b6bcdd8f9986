#pragma once

// The topology in a broker's file, inside the transaction that the caller has open.

#include <string>
#include <vector>

#include "baton/broker.h"
#include "broker/embedded/broker_file.h"

namespace baton::broker {

struct StoredQueue {
  std::int64_t id = 0;
  std::uint64_t max_length = 0;
};

struct StoredTopology {
  Topology topology;
  std::vector<StoredQueue> queues;  // parallel to topology.queues
};

// Counts declarations that changed something.
[[nodiscard]] Result<std::int64_t> topology_version(Database& database);

[[nodiscard]] Result<StoredTopology> load_topology(Database& database);

// The topology with its queues for dead letters, which it only implies.
[[nodiscard]] Topology with_dead_letters(const Topology& topology);

// How what is there differs from what is wanted, which with_dead_letters() has completed: what is
// missing, has other arguments, or is bound besides.
[[nodiscard]] std::vector<BrokerFinding> differences(const Topology& there, const Topology& wanted);

// Adds what is missing. The caller has seen that nothing has other arguments.
[[nodiscard]] Result<void> add_missing(Database& database, const Topology& there,
                                       const Topology& wanted);

}  // namespace baton::broker
