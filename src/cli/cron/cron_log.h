#pragma once

#include "baton/scheduler.h"
#include "cli/cron/log_queue.h"

namespace baton::cli {

// A line for each start and each end of a fire, and what the scheduler says besides.
class CronLog final : public SchedulerListener {
 public:
  explicit CronLog(LogQueue& log) : log_(log) {}

  void on_acquired(const Fire& fire, std::chrono::nanoseconds asked, Millis late) override;
  void on_skipped(const Fire& fire, SkipReason reason) override;
  void on_finished(const Fire& fire, FireResult result, std::chrono::nanoseconds duration,
                   const std::string& detail) override;
  void on_stuck(const Fire& fire, Millis running_for) override;
  void on_log(LogLevel level, const std::string& job, const std::string& message) override;

 private:
  LogQueue& log_;
};

}  // namespace baton::cli
