#include "core/describe.h"

#include <algorithm>

#include "core/apply.h"

namespace baton::core {

Millis millis_up(StoreTime time) { return std::chrono::ceil<Millis>(std::max(time, StoreTime{0})); }

HolderInfo show(const Holder& holder, StoreTime now) {
  HolderInfo info;
  info.grant = holder.grant;
  info.mode = holder.mode;
  info.token = holder.token;
  info.predicate = holder.predicate;
  info.owner = holder.owner;
  info.metadata = holder.metadata;
  info.ttl = holder.ttl;
  info.held_for = std::chrono::floor<Millis>(now - holder.since);
  info.expires_in = millis_up(holder.expires - now);
  info.claimed = holder.state != HolderState::handed;
  info.released = holder.state == HolderState::parked;
  info.revoked = holder.revoked;
  info.reason = holder.reason;
  return info;
}

bool forgettable(const NameState& state, StoreTime now) {
  const auto over = [&](StoreTime end) { return end <= now; };
  return state.note == Note{} &&
         std::all_of(state.holders.begin(), state.holders.end(),
                     [&](const Holder& h) { return over(h.expires); }) &&
         std::all_of(state.waiters.begin(), state.waiters.end(),
                     [&](const Waiter& w) { return over(w.stale); }) &&
         std::all_of(state.tombstones.begin(), state.tombstones.end(),
                     [&](const Tombstone& t) { return over(t.until); });
}

LockInfo describe(const std::string& key, const NameState& state, StoreTime now,
                  std::size_t max_waiters) {
  LockInfo info;
  info.key = key;
  info.note = state.note;
  for (const Holder& holder : state.holders) {
    if (holder.expires > now) info.holders.push_back(show(holder, now));
  }
  const auto holds = [&](GrantId grant) {
    return std::any_of(info.holders.begin(), info.holders.end(),
                       [&](const HolderInfo& holder) { return holder.grant == grant; });
  };
  for (const Waiter& waiter : state.waiters) {
    if (waiter.stale <= now || (waiter.converting && !holds(waiter.grant))) continue;
    ++info.waiting;
    if (info.waiters.size() >= max_waiters) continue;
    info.waiters.push_back(
        {waiter.grant, waiter.mode, waiter.predicate, waiter.owner, waiter.converting});
  }
  return info;
}

}  // namespace baton::core
