#include "explore/consumer_world.h"
#include "explore/mutant.h"

namespace baton::explore {

Report first_finding() {
  for (const ConsumerSetting& setting : consumer_settings()) {
    Report report = explore_consumer(setting);
    if (!report.problem.empty()) return report;
  }
  return {};
}

}  // namespace baton::explore
