#include "explore/mutant.h"
#include "explore/relay_world.h"

namespace baton::explore {

Report first_finding() {
  for (const RelaySetting& setting : relay_settings()) {
    Report report = explore_relay(setting);
    if (!report.problem.empty()) return report;
  }
  return {};
}

}  // namespace baton::explore
