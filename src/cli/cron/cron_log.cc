#include "cli/cron/cron_log.h"

#include "node/wall_time.h"

namespace baton::cli {
namespace {

constexpr const char* kLogger = "baton.cron";

observe::LogFields fields_of(const Fire& fire) {
  observe::LogFields fields{{"job", fire.job}, {"fire", std::to_string(fire.number)}};
  fields.emplace_back("due", node::print_time(fire.due));
  if (fire.attempt > 1) fields.emplace_back("attempt", std::to_string(fire.attempt));
  if (fire.manual) fields.emplace_back("manual", "true");
  return fields;
}

std::string in_ms(std::chrono::nanoseconds time) {
  return std::to_string(std::chrono::floor<Millis>(time).count());
}

observe::LogLevel level_of(LogLevel level) {
  switch (level) {
    // The lines below say the same of each fire, with fields.
    case LogLevel::debug:
    case LogLevel::info: return observe::LogLevel::debug;
    case LogLevel::warning: return observe::LogLevel::warn;
    case LogLevel::error: return observe::LogLevel::error;
  }
  return observe::LogLevel::info;
}

}  // namespace

void CronLog::on_acquired(const Fire& fire, std::chrono::nanoseconds /*asked*/, Millis late) {
  auto fields = fields_of(fire);
  fields.emplace_back("token", std::to_string(fire.token));
  fields.emplace_back("lateMs", std::to_string(late.count()));
  log_.write(observe::LogLevel::info, kLogger, "FIRE_STARTED", std::move(fields));
}

void CronLog::on_skipped(const Fire& fire, SkipReason reason) {
  auto fields = fields_of(fire);
  fields.emplace_back("reason", to_string(reason));
  log_.write(reason == SkipReason::other_node ? observe::LogLevel::debug : observe::LogLevel::info,
             kLogger, "FIRE_SKIPPED", std::move(fields));
}

void CronLog::on_finished(const Fire& fire, FireResult result, std::chrono::nanoseconds duration,
                          const std::string& detail) {
  auto fields = fields_of(fire);
  fields.emplace_back("result", to_string(result));
  fields.emplace_back("durationMs", in_ms(duration));
  if (!detail.empty()) fields.emplace_back("detail", detail);
  log_.write(result == FireResult::ok || result == FireResult::left ? observe::LogLevel::info
                                                                    : observe::LogLevel::warn,
             kLogger, "FIRE_ENDED", std::move(fields));
}

// A command without a timeout may well take longer than its lock, which is renewed.
void CronLog::on_stuck(const Fire& fire, Millis running_for) {
  auto fields = fields_of(fire);
  fields.emplace_back("runningMs", std::to_string(running_for.count()));
  log_.write(observe::LogLevel::warn, kLogger, "FIRE_STILL_RUNNING", std::move(fields));
}

void CronLog::on_log(LogLevel level, const std::string& job, const std::string& message) {
  // FIRE_ENDED and FIRE_STILL_RUNNING say it.
  if (message.starts_with("Job failed: ") || message.starts_with("Still running after ")) return;
  log_.write(level_of(level), kLogger, message,
             job.empty() ? observe::LogFields{} : observe::LogFields{{"job", job}});
}

}  // namespace baton::cli
