#pragma once

#include <memory>
#include <string>

#include "baton/metrics.h"
#include "baton/relay.h"

namespace baton::observe {

// What a relay does, as baton_outbox_…: give count() what RelayOptions::on_event tells, and show()
// the statistics about once a second. docs/observing.md has the names. Thread-safe.
class BATON_EXPORT OutboxMetrics {
 public:
  // `outbox` is the label of all series: the name of the relay.
  OutboxMetrics(std::shared_ptr<Metrics> metrics, const std::string& outbox);
  ~OutboxMetrics();
  OutboxMetrics(const OutboxMetrics&) = delete;
  OutboxMetrics& operator=(const OutboxMetrics&) = delete;

  void count(const RelayEvent& event) const;
  void show(const RelayStats& stats) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::observe
