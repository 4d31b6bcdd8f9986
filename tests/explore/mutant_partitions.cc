#include "explore/mutant.h"
#include "explore/partitions_world.h"

namespace baton::explore {

Report first_finding() {
  for (const PartitionSetting& setting : partition_settings()) {
    Report report = explore_partitions(setting);
    if (!report.problem.empty()) return report;
  }
  return {};
}

}  // namespace baton::explore
