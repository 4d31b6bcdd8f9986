#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "baton/metrics.h"

namespace baton::warehouse {

struct ObserverMetricsOptions {
  std::string node;                // of lock_acquired_by_node
  std::vector<std::string> types;  // shown as 0 from the start, so that a type that is never polled
                                   // can be told from one that is not there
};

// Metrics of the observers, under the names scheduler_observer_… that their dashboards and alerts
// use. Call each function when the event has happened. Thread-safe.
class ObserverMetrics {
 public:
  using Seconds = std::chrono::duration<double>;

  ObserverMetrics(std::shared_ptr<observe::Metrics> metrics, const ObserverMetricsOptions& options);
  ~ObserverMetrics();
  ObserverMetrics(const ObserverMetrics&) = delete;
  ObserverMetrics& operator=(const ObserverMetrics&) = delete;

  void acquired(std::string_view type);
  void failed(std::string_view type);  // the lock was not acquired: another node polls, or has

  void given_up(std::string_view type);  // a poll that has crashed too often

  // A poll has ended well, or in an error. One that took longer than the TTL of its lock is an
  // overrun.
  void polled(std::string_view type, Seconds took, Seconds lock_ttl = std::chrono::minutes(1));
  void poll_failed(std::string_view type, Seconds took, Seconds lock_ttl = std::chrono::minutes(1));

  // One round over all types of this node.
  void cycle(Seconds took, int locked, int skipped);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::warehouse
