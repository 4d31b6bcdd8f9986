#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "baton/store_admin.h"
#include "store/common/findings.h"
#include "store/postgres/schema.h"

namespace baton::store::postgres {

struct Checkup {
  Millis ttl{30'000};
  int sessions = 4;  // that a process may need
  const SchemaPlan& plan = kPlan;
  std::function<std::chrono::microseconds()> clock = wall_clock;  // ours
};

// What weakens the promise of a store on this server.
[[nodiscard]] Result<std::vector<Finding>> examine(const Settings& settings, const Checkup& checkup,
                                                   Deadline deadline);

}  // namespace baton::store::postgres
