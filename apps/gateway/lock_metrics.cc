#include "apps/gateway/lock_metrics.h"

namespace baton::gateway {

LockMetrics::LockMetrics(observe::Metrics& metrics, const std::string& prefix)
    : attempts_(metrics.counter(prefix + "_lock_acquisition_attempts_total",
                                "Times a lock was asked for.")),
      successes_(
          metrics.counter(prefix + "_lock_acquisition_successes_total", "Times it was granted.")),
      contention_(metrics.counter(prefix + "_lock_acquisition_failures_total", "Times it was not.",
                                  {{"reason", "contention"}})),
      api_error_(metrics.counter(prefix + "_lock_acquisition_failures_total", "Times it was not.",
                                 {{"reason", "api_error"}})),
      acquisition_(metrics.histogram(prefix + "_lock_acquisition_duration_seconds",
                                     "From asking for a lock to holding it.")),
      releases_(metrics.counter(prefix + "_lock_releases_total", "Times a lock was let go.")),
      hold_(metrics.histogram(prefix + "_lock_hold_duration_seconds",
                              "From holding a lock to letting it go.")) {}

void LockMetrics::acquired(Duration took) const {
  successes_.add();
  acquisition_.observe(took.count());
}

void LockMetrics::failed(const Error& error) const {
  const bool held = error.code == Code::busy || error.code == Code::timed_out;
  (held ? contention_ : api_error_).add();
}

void LockMetrics::released(Duration held) const {
  releases_.add();
  hold_.observe(held.count());
}

}  // namespace baton::gateway
