#include "broker/common/queue_findings.h"

#include <map>

#include "broker/common/message.h"

namespace baton::broker {

std::vector<BrokerFinding> queue_findings(const Topology& topology,
                                          const std::vector<QueueInfo>& counted) {
  using Severity = BrokerFinding::Severity;
  std::vector<BrokerFinding> findings;
  std::map<std::string, std::uint64_t> ready;
  for (const QueueInfo& queue : counted) ready[queue.name] = queue.ready;
  for (const auto& queue : topology.queues) {
    if (queue.max_length != 0 && ready[queue.name] >= queue.max_length) {
      findings.push_back({Severity::warning, "full-queue", queue.name,
                          "queue " + queue.name + " is full (" + std::to_string(ready[queue.name]) +
                              " messages) and refuses more: look at its consumers"});
    }
    const std::string dead = dead_letter_queue(queue.name);
    if (queue.dead_letters && ready[dead] > 0) {
      findings.push_back({Severity::warning, "dead-letters", dead,
                          "queue " + dead + " has " + std::to_string(ready[dead]) +
                              " messages that were delivered too often: nobody settled them"});
    }
  }
  return findings;
}

}  // namespace baton::broker
