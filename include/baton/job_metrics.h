#pragma once

#include <memory>
#include <string>
#include <vector>

#include "baton/metrics.h"
#include "baton/scheduler.h"

namespace baton::observe {

struct JobMetricsOptions {
  std::vector<std::string> jobs;  // shown as 0 from the start, so that an alert can tell a job that
                                  // never runs from a job that does not exist
};

// Counts what one or more schedulers do, as baton_job_…:
//
//   JobMetrics counting(metrics);
//   baton::Scheduler jobs(locks, {.listeners = {&counting}});
//
// There are series for the first kMaxJobs jobs and the first kMaxJobs groups; those that come later
// are counted together as "other". The label is job_name, because Prometheus sets "job" itself.
// docs/observing.md has the names.
class BATON_EXPORT JobMetrics final : public SchedulerListener {
 public:
  static constexpr std::size_t kMaxJobs = 50;

  explicit JobMetrics(std::shared_ptr<Metrics> metrics, const JobMetricsOptions& options = {});
  ~JobMetrics() override;
  JobMetrics(const JobMetrics&) = delete;
  JobMetrics& operator=(const JobMetrics&) = delete;

  void on_acquired(const Fire& fire, std::chrono::nanoseconds asked, Millis late) override;
  void on_skipped(const Fire& fire, SkipReason reason) override;
  void on_finished(const Fire& fire, FireResult result, std::chrono::nanoseconds duration,
                   const std::string& detail) override;
  void on_stuck(const Fire& fire, Millis running_for) override;
  void on_cycle(const Cycle& cycle) override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::observe
