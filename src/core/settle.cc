#include "core/settle.h"

#include <algorithm>

namespace baton::core {
namespace {

bool ahead(const Waiter& a, const Waiter& b) {
  if (a.converting != b.converting) return a.converting;
  return a.turn < b.turn;
}

bool drop_ended(NameState& state, StoreTime now) {
  const auto holders =
      std::erase_if(state.holders, [&](const Holder& h) { return h.expires <= now; });
  const auto waiters = std::erase_if(state.waiters, [&](const Waiter& w) {
    return w.stale <= now || (w.converting && find_holder(state, w.grant) == nullptr);
  });
  std::erase_if(state.tombstones, [&](const Tombstone& t) { return t.until <= now; });
  return holders + waiters > 0;
}

bool its_turn(const NameState& state, std::size_t index) {
  const Waiter& waiter = state.waiters[index];
  for (const Holder& holder : state.holders) {
    if (holder.grant != waiter.grant && !compatible(holder.mode, waiter.mode)) return false;
  }
  for (std::size_t i = 0; i < index; ++i) {
    if (!compatible(state.waiters[i].mode, waiter.mode)) return false;
  }
  return true;
}

}  // namespace

Holder* find_holder(NameState& state, GrantId grant) {
  const auto it = std::find_if(state.holders.begin(), state.holders.end(),
                               [&](const Holder& h) { return h.grant == grant; });
  return it == state.holders.end() ? nullptr : &*it;
}

Waiter* find_waiter(NameState& state, GrantId grant, bool converting) {
  const auto it = std::find_if(state.waiters.begin(), state.waiters.end(), [&](const Waiter& w) {
    return w.grant == grant && w.converting == converting;
  });
  return it == state.waiters.end() ? nullptr : &*it;
}

void erase_waiter(NameState& state, GrantId grant, bool converting) {
  if (std::erase_if(state.waiters, [&](const Waiter& w) {
        return w.grant == grant && w.converting == converting;
      }) > 0) {
    state.dirty = true;
  }
}

void insert_waiter(NameState& state, Waiter waiter) {
  const auto place = std::upper_bound(state.waiters.begin(), state.waiters.end(), waiter, ahead);
  state.waiters.insert(place, std::move(waiter));
  state.dirty = true;
}

Blockers blockers_of(const NameState& state, GrantId grant, Mode mode, std::uint64_t turn) {
  Blockers found;
  for (const Holder& holder : state.holders) {
    if (holder.grant != grant && !compatible(holder.mode, mode)) found.holders.push_back(&holder);
  }
  for (const Waiter& waiter : state.waiters) {
    if (waiter.grant == grant) continue;
    if ((waiter.converting || waiter.turn < turn) && !compatible(waiter.mode, mode)) {
      found.waiters.push_back(&waiter);
    }
  }
  return found;
}

void settle(LockTable& table, NameState& state, StoreTime now, Effects& effects) {
  const bool freed = drop_ended(state, now) || state.dirty;
  for (std::size_t i = 0; i < state.waiters.size();) {
    if (!its_turn(state, i)) {
      ++i;
      continue;
    }
    Waiter& waiter = state.waiters[i];
    if (!waiter.alone || waiter.converting) {
      if (freed) effects.wakes.push_back({waiter.channel, waiter.grant});
      ++i;
      continue;
    }
    Holder holder;
    const StoreTime claim_within = waiter.claim_within;
    static_cast<Claimant&>(holder) = std::move(waiter);
    holder.token = table.next();
    holder.state = HolderState::handed;
    holder.since = now;
    holder.expires = now + claim_within;
    effects.wakes.push_back({holder.channel, holder.grant});
    effects.durable = true;
    state.holders.push_back(std::move(holder));
    state.waiters.erase(state.waiters.begin() + static_cast<std::ptrdiff_t>(i));
    state.dirty = true;
  }
}

}  // namespace baton::core
