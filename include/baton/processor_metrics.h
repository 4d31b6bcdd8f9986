#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>

#include "baton/metrics.h"
#include "baton/processors.h"

namespace baton::observe {

// How far the processors of an event log are, as baton_processor_…:
//
//   ProcessorMetrics counting(metrics, "postgres://localhost/shop");
//   options.on_error = [&](const std::string& processor, const baton::Error&) {
//     counting.count_error(processor);
//   };
//
// A thread reads the database now and then, so any process that reaches it can show all of them,
// wherever they run. docs/observing.md has the names. Thread-safe.
class BATON_EXPORT ProcessorMetrics {
 public:
  // An empty database: only what show() is given.
  ProcessorMetrics(std::shared_ptr<Metrics> metrics, std::string database,
                   std::chrono::milliseconds every = std::chrono::seconds(5));
  ~ProcessorMetrics();
  ProcessorMetrics(const ProcessorMetrics&) = delete;
  ProcessorMetrics& operator=(const ProcessorMetrics&) = delete;

  void count_error(const std::string& processor) const;
  void show(std::span<const ProcessorState> states) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::observe
