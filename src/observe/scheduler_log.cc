#include "observe/scheduler_log.h"

namespace baton::observe {
namespace {

std::string line(std::string_view before, std::string_view lock, std::string_view behind = {}) {
  return std::string(before).append(lock).append(behind);
}

LogFields because(std::string_view why) { return {{"error", std::string(why)}}; }

}  // namespace

void SchedulerLog::cycle_started() const {
  out_.info("Starting scheduled polling cycle for all observer types");
}
void SchedulerLog::cycle_completed() const {
  out_.info("Polling cycle completed for all observer types");
}
void SchedulerLog::acquired(std::string_view lock) const {
  out_.info(line("Lock acquired for: ", lock));
}
void SchedulerLog::not_acquired(std::string_view lock) const {
  out_.debug(line("Lock not acquired for: ", lock, " (another node is polling)"));
}
void SchedulerLog::completed(std::string_view lock) const {
  out_.info(line("Completed polling for: ", lock));
}
void SchedulerLog::released(std::string_view lock) const {
  out_.debug(line("Lock released for: ", lock));
}
void SchedulerLog::interrupted(std::string_view lock) const {
  out_.warn(line("Interrupted while waiting for lock: ", lock));
}
void SchedulerLog::poll_failed(std::string_view lock, std::string_view why) const {
  out_.error(line("Error during polling for: ", lock), because(why));
}
void SchedulerLog::release_failed(std::string_view lock, std::string_view why) const {
  out_.error(line("Error releasing lock for: ", lock), because(why));
}

}  // namespace baton::observe
