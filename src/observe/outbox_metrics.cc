#include "baton/outbox_metrics.h"

#include <utility>

namespace baton::observe {
namespace {

double in_seconds(std::chrono::duration<double> time) { return time.count(); }

}  // namespace

class OutboxMetrics::Impl {
 public:
  Impl(std::shared_ptr<Metrics> metrics, const std::string& outbox)
      : metrics_(std::move(metrics)),
        labels_{{"outbox", outbox}},
        published(counter("published_total", "Events that the broker has taken.")),
        retries(counter("retries_total", "Returned events that are tried again.")),
        gave_up(counter("gave_up_total", "Events whose last attempt was returned.")),
        refused(counter("refused_total", "Events that a full queue refused.")),
        swept(counter("swept_total", "Events that no relay knew of; stays 0.")),
        latency(metrics_->histogram("baton_outbox_publish_latency_seconds",
                                    "From adding an event to the confirm of the broker.", labels_)),
        pending(gauge("pending", "Events that wait, up to 10000, in the lanes owned here.")),
        held(gauge("held", "Events that wait for another one of their aggregate.")),
        failed(gauge("failed", "Events that have FAILED and hold up their aggregate.")),
        oldest(gauge("oldest_age_seconds", "Age of the oldest event that waits.")),
        blocked(gauge("blocked", "1 while the broker or the database cannot be used.")),
        lanes(gauge("lanes_owned", "Lanes that this process reads.")) {}

  const std::shared_ptr<Metrics> metrics_;
  const Labels labels_;

 private:
  Counter counter(const std::string& name, const std::string& help) const {
    return metrics_->counter("baton_outbox_" + name, help, labels_);
  }
  Gauge gauge(const std::string& name, const std::string& help) const {
    return metrics_->gauge("baton_outbox_" + name, help, labels_);
  }

 public:
  const Counter published, retries, gave_up, refused, swept;
  const Histogram latency;
  const Gauge pending, held, failed, oldest, blocked, lanes;
};

OutboxMetrics::OutboxMetrics(std::shared_ptr<Metrics> metrics, const std::string& outbox)
    : impl_(std::make_unique<Impl>(std::move(metrics), outbox)) {}

OutboxMetrics::~OutboxMetrics() = default;

void OutboxMetrics::count(const RelayEvent& event) const {
  switch (event.kind) {
    case RelayEvent::Kind::published:
      impl_->published.add();
      impl_->latency.observe(in_seconds(event.took));
      break;
    case RelayEvent::Kind::returned: impl_->retries.add(); break;
    case RelayEvent::Kind::failed: impl_->gave_up.add(); break;
    case RelayEvent::Kind::refused: impl_->refused.add(); break;
    case RelayEvent::Kind::swept: impl_->swept.add(static_cast<double>(event.count)); break;
    case RelayEvent::Kind::lane_taken:
    case RelayEvent::Kind::lane_left:
    case RelayEvent::Kind::cleaned:
    case RelayEvent::Kind::recovered: break;
  }
}

void OutboxMetrics::show(const RelayStats& stats) const {
  impl_->pending.set(static_cast<double>(stats.waiting_pending));
  impl_->held.set(static_cast<double>(stats.waiting_held));
  impl_->failed.set(static_cast<double>(stats.waiting_failed));
  impl_->oldest.set(in_seconds(stats.oldest));
  impl_->blocked.set(stats.trouble.empty() ? 0 : 1);
  impl_->lanes.set(static_cast<double>(stats.lanes_owned));
}

}  // namespace baton::observe
