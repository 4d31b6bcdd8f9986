#include "explore/eventlog_world.h"
#include "explore/mutant.h"

namespace baton::explore {

Report first_finding() {
  for (const LogSetting& setting : log_settings()) {
    Report report = explore_log(setting);
    if (!report.problem.empty()) return report;
  }
  return {};
}

}  // namespace baton::explore
