#include "baton/consumer_metrics.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace baton::observe {
namespace {

// Seconds, up to a day: events wait while consumers are away.
const std::vector<double>& age_buckets() {
  static const std::vector<double> buckets = {0.01, 0.05, 0.1, 0.5, 1,     5,
                                              10,   30,   60,  600, 3'600, 86'400};
  return buckets;
}

}  // namespace

class ConsumerMetrics::Impl {
 public:
  Impl(std::shared_ptr<Metrics> metrics, std::string consumer)
      : metrics_(std::move(metrics)),
        consumer_(std::move(consumer)),
        done(handled("done")),
        rejected(handled("rejected")),
        dead(handled("dead")),
        poison(handled("poison")),
        duplicates(counter("duplicates_total", "Deliveries of events decided about before.")),
        retries(counter("retries_total", "Attempts that failed and are made again.")),
        kept(counter("kept_total", "Events that killed a process or that the broker gave up on.")),
        hooks(counter("give_up_failures_total", "Calls of on_give_up that failed.")),
        losses(counter("broker_losses_total", "Times that the broker was lost.")),
        age(metrics_->histogram("baton_consumer_event_age_seconds",
                                "From adding an event to its outbox to its being handled.",
                                {{"consumer", consumer_}}, age_buckets())),
        paused(gauge("baton_consumer_paused", "1 while the database is away.")),
        breaker(gauge("baton_consumer_breaker_open", "1 while one event at a time is tried.")),
        retrying(gauge("baton_consumer_retrying", "Events that wait for another attempt.")),
        held(gauge("baton_consumer_held", "Events that wait for another one of their aggregate.")),
        dead_letters(gauge("baton_dead_letters", "Dead letters of the consumer.")) {}

 private:
  Counter counter(const std::string& name, const std::string& help) const {
    return metrics_->counter("baton_consumer_" + name, help, {{"consumer", consumer_}});
  }
  Counter handled(const std::string& outcome) const {
    return metrics_->counter("baton_consumer_handled_total",
                             "Events that were decided about, by outcome.",
                             {{"consumer", consumer_}, {"outcome", outcome}});
  }
  Gauge gauge(const std::string& name, const std::string& help) const {
    return metrics_->gauge(name, help, {{"consumer", consumer_}});
  }

  const std::shared_ptr<Metrics> metrics_;
  const std::string consumer_;

 public:
  const Counter done, rejected, dead, poison, duplicates, retries, kept, hooks, losses;
  const Histogram age;
  const Gauge paused, breaker, retrying, held, dead_letters;

  void observe_age(const ConsumerNote& note) const {
    if (note.occurred_at == std::chrono::sys_time<Millis>{}) return;  // its sender did not say
    const std::chrono::duration<double> passed =
        std::chrono::system_clock::now() - note.occurred_at;
    age.observe(std::max(passed.count(), 0.0));  // clocks of two machines differ
  }
};

ConsumerMetrics::ConsumerMetrics(std::shared_ptr<Metrics> metrics, const std::string& consumer)
    : impl_(std::make_unique<Impl>(std::move(metrics), consumer)) {}

ConsumerMetrics::~ConsumerMetrics() = default;

void ConsumerMetrics::count(const ConsumerNote& note) const {
  using Kind = ConsumerNote::Kind;
  switch (note.kind) {
    case Kind::received:
    case Kind::held: break;  // its gauge is counted
    case Kind::processed:
      impl_->done.add();
      impl_->observe_age(note);
      break;
    case Kind::rejected:
      impl_->rejected.add();
      impl_->observe_age(note);
      break;
    case Kind::skipped: impl_->duplicates.add(); break;
    case Kind::failed: impl_->retries.add(); break;
    case Kind::kept: impl_->kept.add(); break;
    case Kind::dead: impl_->dead.add(); break;
    case Kind::poison: impl_->poison.add(); break;
    case Kind::hook_failed: impl_->hooks.add(); break;
    case Kind::paused: impl_->paused.set(1); break;
    case Kind::resumed: impl_->paused.set(0); break;
    case Kind::broker_lost: impl_->losses.add(); break;
    case Kind::breaker_opened: impl_->breaker.set(1); break;
    case Kind::breaker_closed: impl_->breaker.set(0); break;
    case Kind::counted:
      impl_->retrying.set(static_cast<double>(note.counts.retry));
      impl_->held.set(static_cast<double>(note.counts.held));
      impl_->dead_letters.set(static_cast<double>(note.counts.dead));
      break;
  }
}

}  // namespace baton::observe
