#include "explore/mutant.h"
#include "explore/wakeup_world.h"

namespace baton::explore {

Report first_finding() {
  for (const WakeUpSetting& setting : wakeup_settings()) {
    Report report = explore_wakeup(setting);
    if (!report.problem.empty()) return report;
  }
  return {};
}

}  // namespace baton::explore
