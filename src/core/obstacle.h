#pragma once

#include "core/settle.h"

namespace baton::core::verbs {

// The holders and waiters that block a request, and when the first of them expires.
struct Obstacle {
  bool blocked = false;
  std::vector<HolderInfo> holders;
  std::optional<StoreTime> holder_ends;
  std::optional<StoreTime> waiter_ends;

  void add(const Blockers& blockers, StoreTime now);
  [[nodiscard]] Reply reply(Outcome what, StoreTime now) const;
};

}  // namespace baton::core::verbs
