#include "core/obstacle.h"

#include <algorithm>

#include "core/describe.h"
#include "core/verbs.h"

namespace baton::core::verbs {

void Obstacle::add(const Blockers& blockers, StoreTime now) {
  blocked = blocked || !blockers.none();
  for (const Holder* holder : blockers.holders) {
    holder_ends = std::min(holder_ends.value_or(holder->expires), holder->expires);
    if (holders.size() < kMaxHoldersShown) holders.push_back(show(*holder, now));
  }
  for (const Waiter* waiter : blockers.waiters) {
    waiter_ends = std::min(waiter_ends.value_or(waiter->stale), waiter->stale);
  }
}

// Holders count first: while a holder blocks the request, it does not help that a waiter expires.
Reply Obstacle::reply(Outcome what, StoreTime now) const {
  Reply reply = outcome(what);
  reply.holders = holders;
  const auto ends = holder_ends ? holder_ends : waiter_ends;
  reply.retry_after = ends ? millis_up(*ends - now) : Millis{0};
  return reply;
}

}  // namespace baton::core::verbs
