#pragma once

#include <chrono>
#include <memory>

#include "baton/metrics.h"
#include "baton/observe.h"

namespace baton::observe {

// Counts what the locks of one or more clients go through:
//
//   const auto counting = std::make_shared<LockMetrics>(metrics);
//   auto locks = baton::open(url, {.observer = counting});
//
// Everything about locks is by subject and predicate. There is room for `max_kinds` of these pairs;
// what comes later is counted as subject and predicate "other". docs/observing.md has the names.
class BATON_EXPORT LockMetrics final : public ClientObserver {
 public:
  static constexpr std::size_t kMaxKinds = 40;

  explicit LockMetrics(const std::shared_ptr<Metrics>& metrics, std::size_t max_kinds = kMaxKinds);
  ~LockMetrics() override;
  LockMetrics(const LockMetrics&) = delete;
  LockMetrics& operator=(const LockMetrics&) = delete;

  void called(const StoreCall& call) override;
  void waiting(const LockName& name, int change) override;
  void acquired(const AcquireEvent& event) override;
  void renewed(const RenewalEvent& event) override;
  void lost(const LossEvent& event) override;
  void released(const ReleaseEvent& event) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::observe
