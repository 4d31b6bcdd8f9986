#include "explore/mutant.h"
#include "explore/ordered_world.h"

namespace baton::explore {

Report first_finding() {
  for (const OrderedSetting& setting : ordered_settings()) {
    Report report = explore_ordered(setting);
    if (!report.problem.empty()) return report;
  }
  return {};
}

}  // namespace baton::explore
