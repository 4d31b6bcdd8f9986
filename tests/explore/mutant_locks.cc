#include "explore/explorer.h"
#include "explore/fences.h"
#include "explore/mutant.h"

namespace baton::explore {

// A little of every world, then more: a flaw shows early in one of them, and which one is not for
// the mutant to say.
Report first_finding() {
  if (Report report = explore_fences(); !report.problem.empty()) return report;
  for (const std::size_t most : {20'000, 200'000, 1'000'000, 5'000'000}) {
    for (Setting setting : all_settings()) {
      setting.max_states = most;
      setting.live_every = 1;
      Report report = explore(setting);
      if (!report.problem.empty()) return report;
    }
  }
  return {};
}

}  // namespace baton::explore
