#pragma once

// The production plan of partitions/plan.h in every order of events: members that look late, ask,
// take, drain and hand over; replicas that join, leave, crash, lose their registration, or hold on
// to it without ever acting. The locks are modelled as the core keeps them: one holder, a queue,
// the first of which is next.
//
// When the changes are over: nothing moves for ever, no partition stays free, every member has its
// quota. And one join moves at most count / n + 1 partitions, one leave or crash only those of the
// replica that has gone.

#include <string>
#include <vector>

#include "explore/explorer.h"

namespace baton::explore {

struct PartitionSetting {
  std::string title;
  int count = 4;
  int nodes = 3;
  std::string members;  // at the start, as in "ab"; they have their quotas
  std::string mute;     // of them, those that never act
  int joins = 0;
  int leaves = 0;
  int crashes = 0;
  int lost_registrations = 0;
};

[[nodiscard]] std::vector<PartitionSetting> partition_settings();
[[nodiscard]] Report explore_partitions(const PartitionSetting& setting);

}  // namespace baton::explore
