#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "baton/locks.h"
#include "partitions/set_name.h"

namespace baton::partitions {

// A lock of a set that is held, as the store shows it.
struct SeenLock {
  std::vector<std::string> set;  // its parts
  std::string last;              // the node, or the number
  HolderInfo holder;
  std::vector<std::string> waiters;
  std::size_t count = 0;  // by which its holder divides the set; 0 if it does not say
};

struct Look {
  std::vector<SeenLock> members;
  std::vector<SeenLock> partitions;
};

// What the store shows of one set, or, if `set` has no parts, of all in its region. The two finds
// are not one moment: the locks decide, whatever is made of it.
[[nodiscard]] Result<Look> look(LockClient& locks, const SetName& set, Millis timeout);

}  // namespace baton::partitions
