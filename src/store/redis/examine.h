#pragma once

#include <map>
#include <string>
#include <vector>

#include "baton/store_admin.h"

namespace baton::store::redis {

// The facts that a server tells about itself; empty where this user may not see them.
struct Facts {
  std::map<std::string, std::string> info;  // the lines of INFO
  std::string memory_policy;
  std::string memory_limit;
  std::string fsync;
  bool replica = false;
  int wait_replicas = 0;  // as the URL says, as the next two
  bool unverified = false;
  bool password_in_clear = false;
};

// The findings that follow from the facts, with those that were measured, the worst first.
[[nodiscard]] std::vector<Finding> examine(const Facts& facts, std::vector<Finding> measured);

}  // namespace baton::store::redis
