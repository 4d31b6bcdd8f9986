#pragma once

// The production class of relay/wakeup.h beside writers: no order of events leaves the relay
// asleep with a committed event that it has not seen and that nobody will notify it of.

#include <string>
#include <vector>

#include "explore/explorer.h"

namespace baton::explore {

struct WakeUpSetting {
  std::string title;
  int writers = 3;
  bool paused_owner = false;  // an earlier owner of the lane keeps its lock
};

[[nodiscard]] std::vector<WakeUpSetting> wakeup_settings();
[[nodiscard]] Report explore_wakeup(const WakeUpSetting& setting);

}  // namespace baton::explore
