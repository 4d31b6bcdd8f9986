#include "store/etcd/visible_state.h"

#include <algorithm>

namespace baton::store::etcd {

using core::Holder;
using core::NameState;
using core::StoreTime;
using core::Tombstone;
using core::Waiter;

void drop_ended(NameState& state, StoreTime now) {
  std::erase_if(state.holders, [&](const Holder& holder) { return holder.expires <= now; });
  std::erase_if(state.waiters, [&](const Waiter& waiter) {
    const bool orphan =
        waiter.converting && std::none_of(state.holders.begin(), state.holders.end(),
                                          [&](const Holder& h) { return h.grant == waiter.grant; });
    return waiter.stale <= now || orphan;
  });
  std::erase_if(state.tombstones, [&](const Tombstone& stone) { return stone.until <= now; });
}

namespace {

NameState visible_state(NameState state, StoreTime now) {
  drop_ended(state, now);
  for (Holder& holder : state.holders) holder.expires = StoreTime{0};
  for (Waiter& waiter : state.waiters) waiter.stale = StoreTime{0};
  return state;
}

}  // namespace

bool same_visible_state(const NameState& a, const NameState& b, StoreTime now) {
  const NameState x = visible_state(a, now);
  const NameState y = visible_state(b, now);
  return x.holders == y.holders && x.waiters == y.waiters && x.tombstones == y.tombstones &&
         x.note == y.note;
}

bool lives(const NameState& state, GrantId grant, StoreTime now) {
  return std::any_of(
             state.holders.begin(), state.holders.end(),
             [&](const Holder& holder) { return holder.grant == grant && holder.expires > now; }) ||
         std::any_of(state.waiters.begin(), state.waiters.end(), [&](const Waiter& waiter) {
           return waiter.grant == grant && waiter.stale > now;
         });
}

const core::Claimant* claimant(const NameState& state, GrantId grant) {
  for (const Holder& holder : state.holders) {
    if (holder.grant == grant) return &holder;
  }
  for (const Waiter& waiter : state.waiters) {
    if (waiter.grant == grant) return &waiter;
  }
  return nullptr;
}

const Holder* holder_of(const NameState& state, GrantId grant) {
  const auto it = std::find_if(state.holders.begin(), state.holders.end(),
                               [&](const Holder& holder) { return holder.grant == grant; });
  return it == state.holders.end() ? nullptr : &*it;
}

}  // namespace baton::store::etcd
