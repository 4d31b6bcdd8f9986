#pragma once

#include <memory>
#include <string>

#include "baton/consumer.h"
#include "baton/metrics.h"

namespace baton::observe {

// What a consumer does, as baton_consumer_… and baton_dead_letters:
//
//   ConsumerMetrics counting(metrics, "billing");
//   options.on_note = [&](const baton::ConsumerNote& note) { counting.count(note); };
//
// docs/observing.md has the names. Thread-safe.
class BATON_EXPORT ConsumerMetrics {
 public:
  // `consumer` is the label of all series: the name of the consumer.
  ConsumerMetrics(std::shared_ptr<Metrics> metrics, const std::string& consumer);
  ~ConsumerMetrics();
  ConsumerMetrics(const ConsumerMetrics&) = delete;
  ConsumerMetrics& operator=(const ConsumerMetrics&) = delete;

  void count(const ConsumerNote& note) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::observe
