#pragma once

#include <chrono>
#include <string>

#include "baton/metrics.h"
#include "baton/result.h"

namespace baton::gateway {

// The six metrics that every service which locks has: PREFIX_lock_acquisition_attempts_total, ….
class LockMetrics {
 public:
  using Duration = std::chrono::duration<double>;

  LockMetrics(observe::Metrics& metrics, const std::string& prefix);

  void attempted() const { attempts_.add(); }
  void acquired(Duration took) const;
  void failed(const Error& error) const;  // contention if somebody else had it, else api_error
  void released(Duration held) const;

 private:
  observe::Counter attempts_;
  observe::Counter successes_;
  observe::Counter contention_;
  observe::Counter api_error_;
  observe::Histogram acquisition_;
  observe::Counter releases_;
  observe::Histogram hold_;
};

}  // namespace baton::gateway
