#include "apps/warehouse/observer_metrics.h"

#include <map>
#include <mutex>

namespace baton::warehouse {
namespace {

using observe::Counter;
using observe::Gauge;
using observe::Histogram;
using observe::Labels;
using observe::Metrics;

struct TypeSeries {
  Counter acquired;
  Counter failed;
  Counter by_node;
  Counter poll_failures;
  Counter overruns;
  Counter given_up;
  Histogram polling;
};

TypeSeries make_series(Metrics& metrics, const std::string& node, const std::string& type) {
  const Labels labels{{"type", type}};
  return {metrics.counter("scheduler_observer_lock_acquired_total", "Locks acquired for a poll.",
                          labels),
          metrics.counter("scheduler_observer_lock_failed_total", "Polls left to another node.",
                          labels),
          metrics.counter("scheduler_observer_lock_acquired_by_node",
                          "Locks acquired for a poll, by node.", {{"node", node}, {"type", type}}),
          metrics.counter("scheduler_observer_polling_failed_total",
                          "Polls that ended in an error.", labels),
          metrics.counter("scheduler_observer_lock_overrun_total",
                          "Polls that took longer than the TTL of their lock.", labels),
          metrics.counter("scheduler_observer_given_up_total",
                          "Polls that were given up after too many crashes.", labels),
          metrics.histogram("scheduler_observer_polling_duration_seconds", "What a poll took.",
                            labels)};
}

}  // namespace

// Called a few times a second, so that a mutex is good enough.
class ObserverMetrics::Impl {
 public:
  Impl(std::shared_ptr<Metrics> metrics, std::string node)
      : metrics_(std::move(metrics)),
        node_(std::move(node)),
        cycle_duration(metrics_->histogram("scheduler_observer_cycle_duration_seconds",
                                           "One round over all observer types.")),
        cycle_locked(metrics_->gauge("scheduler_observer_cycle_locked_count",
                                     "Types that this node locked in its last round.")),
        cycle_skipped(metrics_->gauge("scheduler_observer_cycle_skipped_count",
                                      "Types that this node skipped in its last round.")) {}

  const TypeSeries& of(std::string_view type) {
    const std::lock_guard lock(mutex_);
    const auto found = types_.find(type);
    if (found != types_.end()) return found->second;
    // As many as Metrics has room for; those beyond share its "other".
    if (types_.size() >= kMaxTypes) type = "other";
    return types_.try_emplace(std::string(type), make_series(*metrics_, node_, std::string(type)))
        .first->second;
  }

 private:
  static constexpr std::size_t kMaxTypes = 200;

  const std::shared_ptr<Metrics> metrics_;
  const std::string node_;
  std::mutex mutex_;
  std::map<std::string, TypeSeries, std::less<>> types_;

 public:
  Histogram cycle_duration;
  Gauge cycle_locked;
  Gauge cycle_skipped;
};

ObserverMetrics::ObserverMetrics(std::shared_ptr<Metrics> metrics,
                                 const ObserverMetricsOptions& options)
    : impl_(std::make_unique<Impl>(std::move(metrics), options.node)) {
  for (const std::string& type : options.types) (void)impl_->of(type);
}
ObserverMetrics::~ObserverMetrics() = default;

void ObserverMetrics::acquired(std::string_view type) {
  const TypeSeries& series = impl_->of(type);
  series.acquired.add();
  series.by_node.add();
}

void ObserverMetrics::failed(std::string_view type) { impl_->of(type).failed.add(); }

void ObserverMetrics::given_up(std::string_view type) { impl_->of(type).given_up.add(); }

void ObserverMetrics::polled(std::string_view type, Seconds took, Seconds lock_ttl) {
  const TypeSeries& series = impl_->of(type);
  series.polling.observe(took.count());
  if (took > lock_ttl) series.overruns.add();
}

void ObserverMetrics::poll_failed(std::string_view type, Seconds took, Seconds lock_ttl) {
  polled(type, took, lock_ttl);
  impl_->of(type).poll_failures.add();
}

void ObserverMetrics::cycle(Seconds took, int locked, int skipped) {
  impl_->cycle_duration.observe(took.count());
  impl_->cycle_locked.set(locked);
  impl_->cycle_skipped.set(skipped);
}

}  // namespace baton::warehouse
