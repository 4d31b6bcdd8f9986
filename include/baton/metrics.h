#pragma once

// Counters for people and alerts, in the text format that Prometheus reads. A metric is asked for
// once and kept: counting then takes no lock.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "baton/export.h"

namespace baton::observe {

using Labels = std::vector<std::pair<std::string, std::string>>;

class BATON_EXPORT Counter {
 public:
  void add(double amount = 1) const;

 private:
  friend class Metrics;
  explicit Counter(void* series) : series_(series) {}
  void* series_;
};

class BATON_EXPORT Gauge {
 public:
  void set(double value) const;
  void add(double amount) const;

 private:
  friend class Metrics;
  explicit Gauge(void* series) : series_(series) {}
  void* series_;
};

class BATON_EXPORT Histogram {
 public:
  void observe(double value) const;

 private:
  friend class Metrics;
  explicit Histogram(void* series) : series_(series) {}
  void* series_;
};

// Bounds in seconds, from a millisecond to a minute.
[[nodiscard]] BATON_EXPORT const std::vector<double>& latency_buckets();

// Thread-safe. What it gives lives as long as it does; asking again for the same name and labels
// gives the same. Throws std::invalid_argument for a name that Prometheus does not allow, and for
// one that already is another kind of metric.
class BATON_EXPORT Metrics {
 public:
  // Of one name there are at most `max_series` sets of labels: whatever comes after is counted
  // under labels that all say "other", so that no client can fill the memory with values that it
  // makes up.
  explicit Metrics(std::size_t max_series = 256);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  Counter counter(const std::string& name, const std::string& help, const Labels& labels = {});
  Gauge gauge(const std::string& name, const std::string& help, const Labels& labels = {});
  Histogram histogram(const std::string& name, const std::string& help, const Labels& labels = {},
                      const std::vector<double>& buckets = latency_buckets());

  [[nodiscard]] std::string text() const;
  static constexpr std::string_view kContentType = "text/plain; version=0.0.4; charset=utf-8";

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::observe
