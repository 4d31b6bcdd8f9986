#include "baton/job_metrics.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

namespace baton::observe {
namespace {

constexpr std::array kSkipReasons = {SkipReason::other_node, SkipReason::busy, SkipReason::skipped,
                                     SkipReason::unavailable, SkipReason::given_up};
constexpr std::array kResults = {FireResult::ok, FireResult::failed, FireResult::lost,
                                 FireResult::unconfirmed, FireResult::left};

double seconds(std::chrono::duration<double> time) { return time.count(); }

struct JobSeries {
  JobSeries(Metrics& metrics, const std::string& job)
      : starts(metrics.counter("baton_job_starts_total", "Fires that this node started.",
                               {{"job_name", job}})),
        stuck(metrics.counter("baton_job_stuck_total",
                              "Runs that were reported because they took too long.",
                              {{"job_name", job}})),
        running(metrics.gauge("baton_job_running", "Runs of this node that have not ended.",
                              {{"job_name", job}})),
        delay(metrics.histogram("baton_job_start_delay_seconds",
                                "How long after it was due a fire started.", {{"job_name", job}})),
        duration(metrics.histogram("baton_job_run_duration_seconds", "What a run took.",
                                   {{"job_name", job}})) {
    for (const SkipReason reason : kSkipReasons) {
      skips.push_back(
          metrics.counter("baton_job_skips_total", "Fires that this node did not start, by reason.",
                          {{"job_name", job}, {"reason", std::string(to_string(reason))}}));
    }
    for (const FireResult result : kResults) {
      runs.push_back(
          metrics.counter("baton_job_runs_total", "Runs that ended, by result.",
                          {{"job_name", job}, {"result", std::string(to_string(result))}}));
    }
  }

  Counter starts;
  Counter stuck;
  Gauge running;
  Histogram delay;
  Histogram duration;
  std::vector<Counter> skips;  // as kSkipReasons
  std::vector<Counter> runs;   // as kResults
};

struct GroupSeries {
  GroupSeries(Metrics& metrics, const std::string& group)
      : duration(metrics.histogram("baton_job_cycle_duration_seconds",
                                   "Periods in which a fire of the group was due on this node.",
                                   {{"group", group}})),
        started(metrics.gauge("baton_job_cycle_fires",
                              "Fires of the last cycle, by what this node "
                              "did.",
                              {{"group", group}, {"action", "started"}})),
        skipped(metrics.gauge("baton_job_cycle_fires",
                              "Fires of the last cycle, by what this node "
                              "did.",
                              {{"group", group}, {"action", "skipped"}})) {}

  Histogram duration;
  Gauge started;
  Gauge skipped;
};

// Series by name, made when a name is first used.
template <typename Series>
class SeriesByName {
 public:
  explicit SeriesByName(Metrics& metrics) : metrics_(metrics) {}

  const Series& of(std::string name) {
    const std::lock_guard lock(mutex_);
    if (const auto found = series_.find(name); found != series_.end()) return found->second;
    if (series_.size() >= JobMetrics::kMaxJobs) name = "other";
    return series_.try_emplace(name, metrics_, name).first->second;
  }

 private:
  Metrics& metrics_;
  std::mutex mutex_;
  std::map<std::string, Series> series_;
};

}  // namespace

class JobMetrics::Impl {
 public:
  explicit Impl(std::shared_ptr<Metrics> metrics)
      : metrics_(std::move(metrics)), jobs(*metrics_), groups(*metrics_) {}

 private:
  const std::shared_ptr<Metrics> metrics_;

 public:
  SeriesByName<JobSeries> jobs;
  SeriesByName<GroupSeries> groups;
};

JobMetrics::JobMetrics(std::shared_ptr<Metrics> metrics, const JobMetricsOptions& options)
    : impl_(std::make_unique<Impl>(std::move(metrics))) {
  for (const std::string& job : options.jobs) (void)impl_->jobs.of(job);
}
JobMetrics::~JobMetrics() = default;

void JobMetrics::on_acquired(const Fire& fire, std::chrono::nanoseconds /*asked*/, Millis late) {
  const JobSeries& job = impl_->jobs.of(fire.job);
  job.starts.add();
  job.running.add(1);
  // A wall clock that is ahead starts fires early.
  job.delay.observe(std::max(0.0, seconds(late)));
}

void JobMetrics::on_skipped(const Fire& fire, SkipReason reason) {
  impl_->jobs.of(fire.job).skips.at(static_cast<std::size_t>(reason)).add();
}

void JobMetrics::on_finished(const Fire& fire, FireResult result, std::chrono::nanoseconds duration,
                             const std::string& /*detail*/) {
  const JobSeries& job = impl_->jobs.of(fire.job);
  job.running.add(-1);
  job.runs.at(static_cast<std::size_t>(result)).add();
  job.duration.observe(seconds(duration));
}

void JobMetrics::on_stuck(const Fire& fire, Millis /*running_for*/) {
  impl_->jobs.of(fire.job).stuck.add();
}

void JobMetrics::on_cycle(const Cycle& cycle) {
  const GroupSeries& group = impl_->groups.of(cycle.group);
  group.duration.observe(seconds(cycle.duration));
  group.started.set(static_cast<double>(cycle.locked));
  group.skipped.set(static_cast<double>(cycle.skipped));
}

}  // namespace baton::observe
