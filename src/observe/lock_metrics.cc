#include "baton/lock_metrics.h"

#include <array>
#include <atomic>
#include <deque>
#include <mutex>

#include "observe/lock_kinds.h"

namespace baton::observe {
namespace {

double seconds(std::chrono::duration<double> time) { return time.count(); }

// Calls of a store that answers from memory take microseconds.
const std::vector<double>& call_buckets() {
  static const std::vector<double> buckets = {0.00001, 0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01,
                                              0.025,   0.05,   0.1,    0.25,  0.5,    1,     5};
  return buckets;
}

// Counts answers by verb and outcome; a series exists once it has been counted.
class AnswerCounts {
 public:
  explicit AnswerCounts(std::shared_ptr<Metrics> metrics) : metrics_(std::move(metrics)) {}

  void add(Verb verb, Outcome outcome) {
    const auto place =
        static_cast<std::size_t>(verb) * kOutcomes + static_cast<std::size_t>(outcome);
    const Counter* counter = counters_[place].load(std::memory_order_acquire);
    (counter != nullptr ? counter : make(place, verb, outcome))->add();
  }

 private:
  static constexpr std::size_t kVerbs = 8;
  static constexpr std::size_t kOutcomes = 10;

  const Counter* make(std::size_t place, Verb verb, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    made_.push_back(metrics_->counter(
        "baton_store_requests_total", "Requests to the store.",
        {{"verb", std::string(to_string(verb))}, {"outcome", std::string(to_string(outcome))}}));
    counters_[place].store(&made_.back(), std::memory_order_release);
    return &made_.back();
  }

  const std::shared_ptr<Metrics> metrics_;
  std::mutex mutex_;
  std::deque<Counter> made_;
  std::array<std::atomic<const Counter*>, kVerbs * kOutcomes> counters_{};
};

}  // namespace

class LockMetrics::Impl {
 public:
  Impl(const std::shared_ptr<Metrics>& metrics, std::size_t max_kinds)
      : kinds(metrics, max_kinds),
        answers(metrics),
        calls(metrics->histogram("baton_store_call_duration_seconds", "Calls of the store.", {},
                                 call_buckets())),
        failed_calls(metrics->counter("baton_store_call_failures_total",
                                      "Calls that the store did not answer.")),
        renewal_delay(metrics->histogram(
            "baton_lock_renewal_delay_seconds",
            "How long after it was due, a third of the TTL, a renewal was confirmed.")),
        handover(metrics->histogram("baton_lock_handover_duration_seconds",
                                    "From the wake-up of a waiter to its holding the lock.")),
        overlap(metrics->histogram("baton_lock_lease_overlap_seconds",
                                   "How long a holder that lost its lease went on after somebody "
                                   "else may have held it.")) {}

  LockKinds kinds;
  AnswerCounts answers;
  Histogram calls;
  Counter failed_calls;
  Histogram renewal_delay;
  Histogram handover;
  Histogram overlap;
};

LockMetrics::LockMetrics(const std::shared_ptr<Metrics>& metrics, std::size_t max_kinds)
    : impl_(std::make_unique<Impl>(metrics, max_kinds)) {}
LockMetrics::~LockMetrics() = default;

void LockMetrics::called(const StoreCall& call) {
  impl_->calls.observe(seconds(call.took));
  if (call.error != nullptr) impl_->failed_calls.add();
  for (std::size_t i = 0; i < call.replies.size(); ++i) {
    impl_->answers.add(call.requests[i].verb, call.replies[i].outcome);
  }
}

void LockMetrics::waiting(const LockName& name, int change) {
  impl_->kinds.of(name).queue.add(change);
}

void LockMetrics::acquired(const AcquireEvent& event) {
  // A name that breaks the rules may be anything, and a new one every time.
  const bool named = event.error == nullptr || event.error->code != Code::bad_name;
  const LockKind& kind = named ? impl_->kinds.of(event.name) : impl_->kinds.other();
  kind.attempts.add();
  if (event.error != nullptr) {
    kind.failures[static_cast<std::size_t>(failure_of(event.error->code))].add();
    return;
  }
  kind.successes.add();
  kind.active.add(1);
  kind.ttl.observe(seconds(event.ttl));
  (event.waited ? kind.acquired_after_waiting : kind.acquired_at_once).observe(seconds(event.took));
  if (event.handover) impl_->handover.observe(seconds(*event.handover));
}

void LockMetrics::renewed(const RenewalEvent& event) {
  impl_->renewal_delay.observe(seconds(event.late));
}

void LockMetrics::lost(const LossEvent& event) {
  const LockKind& kind = impl_->kinds.of(event.name);
  (event.loss == Loss::expired ? kind.expired : kind.refused).add();
}

void LockMetrics::released(const ReleaseEvent& event) {
  const LockKind& kind = impl_->kinds.of(event.name);
  kind.active.add(-1);
  kind.releases.add();
  kind.hold.observe(seconds(event.held));
  if (event.error != nullptr) kind.release_failures.add();
  if (event.overlap.count() > 0) impl_->overlap.observe(seconds(event.overlap));
}

}  // namespace baton::observe
