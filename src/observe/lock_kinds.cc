#include "observe/lock_kinds.h"

namespace baton::observe {
namespace {

constexpr const char* kAcquisition = "baton_lock_acquisition_duration_seconds";
constexpr const char* kAcquisitionHelp = "From asking for a lock to holding it.";

Labels with(Labels labels, std::string name, std::string_view value) {
  labels.emplace_back(std::move(name), std::string(value));
  return labels;
}

std::vector<Counter> make_failures(Metrics& metrics, const Labels& kind) {
  std::vector<Counter> failures;
  for (const std::string_view reason : kFailures) {
    failures.push_back(metrics.counter("baton_lock_acquisition_failures_total",
                                       "Times a lock was not granted.",
                                       with(kind, "reason", reason)));
  }
  return failures;
}

const std::vector<double>& ttl_buckets() {
  static const std::vector<double> buckets = {1, 5, 10, 20, 30, 60, 120, 300, 900, 3600};
  return buckets;
}

// A lock may be held for as long as a batch job runs.
const std::vector<double>& hold_buckets() {
  static const std::vector<double> buckets = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                              0.5,   1,      5,     10,   30,    60,   300, 3600};
  return buckets;
}

}  // namespace

Failure failure_of(Code code) {
  switch (code) {
    case Code::busy:
    case Code::timed_out:
    case Code::deadlock: return Failure::contention;
    case Code::superseded: return Failure::superseded;
    case Code::denied: return Failure::denied;
    case Code::cancelled: return Failure::cancelled;
    case Code::bad_name:
    case Code::bad_request:
    case Code::unsupported: return Failure::invalid;
    default: return Failure::api_error;
  }
}

LockKind::LockKind(Metrics& metrics, const std::string& what, const std::string& action)
    : LockKind(metrics, what, action, {{"subject", what}, {"predicate", action}}) {}

LockKind::LockKind(Metrics& metrics, const std::string& what, const std::string& action,
                   const Labels& kind)
    : subject(what),
      predicate(action),
      attempts(metrics.counter("baton_lock_acquisition_attempts_total",
                               "Times a lock was asked for, counted when answered.", kind)),
      successes(metrics.counter("baton_lock_acquisition_successes_total",
                                "Times a lock was granted.", kind)),
      failures(make_failures(metrics, kind)),
      acquired_at_once(
          metrics.histogram(kAcquisition, kAcquisitionHelp, with(kind, "waited", "no"))),
      acquired_after_waiting(
          metrics.histogram(kAcquisition, kAcquisitionHelp, with(kind, "waited", "yes"))),
      ttl(metrics.histogram("baton_lock_ttl_seconds", "The TTL of each lock that was granted.",
                            kind, ttl_buckets())),
      active(metrics.gauge("baton_lock_active", "Locks held by this process.", kind)),
      queue(metrics.gauge("baton_lock_queue_length", "Acquires of this process that wait.", kind)),
      expired(metrics.counter("baton_lock_losses_total", "Leases that were lost while held.",
                              with(kind, "reason", "expired"))),
      refused(metrics.counter("baton_lock_losses_total", "Leases that were lost while held.",
                              with(kind, "reason", "refused"))),
      releases(metrics.counter("baton_lock_releases_total", "Times a lock was let go.", kind)),
      release_failures(metrics.counter("baton_lock_release_failures_total",
                                       "Releases that the store did not confirm: such a lock ends "
                                       "by its TTL.",
                                       kind)),
      hold(metrics.histogram("baton_lock_hold_duration_seconds",
                             "From holding a lock to letting it go.", kind, hold_buckets())) {}

LockKinds::LockKinds(std::shared_ptr<Metrics> metrics, std::size_t most)
    : metrics_(std::move(metrics)), most_(most) {
  tables_.push_back(std::make_unique<Table>());
  table_ = tables_.back().get();
}

const LockKind& LockKinds::of(const LockName& name) {
  const Table& table = *table_.load(std::memory_order_acquire);
  const auto found = table.find(Name(name.subject, name.predicate));
  if (found != table.end()) return *found->second;
  return table.size() < most_ ? add(name) : other();
}

const LockKind& LockKinds::other() {
  std::call_once(other_once_,
                 [this] { other_ = std::make_unique<LockKind>(*metrics_, "other", "other"); });
  return *other_;
}

const LockKind& LockKinds::add(const LockName& name) {
  const std::lock_guard lock(mutex_);
  const Table& now = *table_.load(std::memory_order_relaxed);
  const auto found = now.find(Name(name.subject, name.predicate));
  if (found != now.end()) return *found->second;
  if (now.size() >= most_) return other();
  kinds_.push_back(std::make_unique<LockKind>(*metrics_, name.subject, name.predicate));
  const LockKind& kind = *kinds_.back();
  auto next = std::make_unique<Table>(now);
  next->emplace(Name(kind.subject, kind.predicate), &kind);
  tables_.push_back(std::move(next));
  table_.store(tables_.back().get(), std::memory_order_release);
  return kind;
}

}  // namespace baton::observe
