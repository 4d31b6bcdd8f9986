#include "store/etcd/local_view.h"

#include <algorithm>
#include <set>

namespace baton::store::etcd {
namespace {

using core::Holder;
using core::HolderState;
using core::NameState;
using core::StoreTime;
using core::Tombstone;
using core::Waiter;

constexpr std::size_t kMostSightings = 10'000;  // names

std::map<GrantId, OwnGrants::Times> own_times(const NameState& state,
                                              const LocalView::IsOwn& is_own) {
  std::map<GrantId, OwnGrants::Times> times;
  for (const Holder& holder : state.holders) {
    if (is_own(holder.grant)) times[holder.grant].holds_until = holder.expires;
  }
  for (const Waiter& waiter : state.waiters) {
    if (!is_own(waiter.grant)) continue;
    auto& own = times[waiter.grant];
    (waiter.converting ? own.converts_until : own.waits_until) = waiter.stale;
  }
  for (const Tombstone& stone : state.tombstones) {
    if (is_own(stone.grant)) times[stone.grant].entombed_until = stone.until;
  }
  return times;
}

}  // namespace

StoreTime LocalView::first_seen(const Sightings& before, Sightings& now_seen, const Holder& holder,
                                StoreTime now) const {
  const std::pair place{holder.grant, holder.token};
  const auto it = before.find(place);
  return now_seen.emplace(place, it == before.end() ? now : it->second).first->second;
}

void LocalView::localise(const std::string& key, const Marks& marks, Holder& holder, StoreTime now,
                         StoreTime seen) const {
  const StoreTime span = std::max(holder.expires - holder.since, StoreTime{0});
  if (holder.state == HolderState::handed) {
    holder.since = seen;
    holder.expires = marks.alive != 0 ? seen + span : now;
    return;
  }
  // Its process is dead or was cut off, but it asked to keep the name taken for so long.
  if (marks.alive == 0 && marks.at_least != 0) holder.state = HolderState::parked;
  const bool alive = holder.state == HolderState::parked ? marks.at_least != 0 : marks.alive != 0;
  if (!alive) {
    holder.expires = now;
  } else if (marks.own) {
    const auto times = own_.find(key, holder.grant);
    if (times && times->holds_until) holder.expires = *times->holds_until;
  } else {
    holder.since = seen;
    holder.expires = now + (holder.state == HolderState::parked ? StoreTime(holder.at_least_for)
                                                                : StoreTime(holder.ttl));
  }
}

void LocalView::localise(const std::string& key, const Marks& marks, Waiter& waiter,
                         StoreTime now) const {
  if (marks.alive == 0) {
    waiter.stale = now;
  } else if (!marks.own) {
    waiter.stale = now + StoreTime(waiter.ttl);
  } else if (const auto times = own_.find(key, waiter.grant)) {
    waiter.stale =
        (waiter.converting ? times->converts_until : times->waits_until).value_or(waiter.stale);
  }
}

void LocalView::localise(const std::string& key, const Marks& marks, Tombstone& tombstone,
                         StoreTime now) const {
  if (marks.tombstone == 0) {
    tombstone.until = now;
  } else if (!marks.own) {
    tombstone.until = now + std::chrono::seconds(1);
  } else if (const auto times = own_.find(key, tombstone.grant)) {
    tombstone.until = times->entombed_until.value_or(tombstone.until);
  }
}

NameState LocalView::localised(const std::string& key, const Record& record, StoreTime now,
                               bool remember) {
  NameState state = record.state;
  Sightings before;
  Sightings seen;
  {
    const std::lock_guard lock(mutex_);
    if (const auto it = sightings_.find(key); it != sightings_.end()) before = it->second;
  }
  for (Holder& holder : state.holders) {
    const Marks& marks = record.marks_of(holder.grant);
    const bool by_sight = holder.state == HolderState::handed || !marks.own;
    localise(key, marks, holder, now, by_sight ? first_seen(before, seen, holder, now) : now);
  }
  for (Waiter& waiter : state.waiters) localise(key, record.marks_of(waiter.grant), waiter, now);
  for (Tombstone& stone : state.tombstones) {
    localise(key, record.marks_of(stone.grant), stone, now);
  }
  if (remember && seen != before) {
    const std::lock_guard lock(mutex_);
    if (sightings_.size() > kMostSightings) sightings_.clear();
    if (seen.empty()) {
      sightings_.erase(key);
    } else {
      sightings_[key] = std::move(seen);
    }
  }
  return state;
}

NameState LocalView::to_be_written(NameState state, const Record& before, const IsOwn& is_own) {
  for (Holder& holder : state.holders) {
    const auto it = std::find_if(before.state.holders.begin(), before.state.holders.end(),
                                 [&](const Holder& old) { return old.grant == holder.grant; });
    if (it == before.state.holders.end()) continue;
    if (is_own(holder.grant) && holder.state != HolderState::handed) continue;
    holder.since = it->since;
    holder.expires = it->expires;
  }
  for (Waiter& waiter : state.waiters) {
    if (is_own(waiter.grant)) continue;
    for (const Waiter& old : before.state.waiters) {
      if (old.grant == waiter.grant && old.converting == waiter.converting)
        waiter.stale = old.stale;
    }
  }
  for (Tombstone& stone : state.tombstones) {
    if (is_own(stone.grant)) continue;
    for (const Tombstone& old : before.state.tombstones) {
      if (old.grant == stone.grant) stone.until = old.until;
    }
  }
  return state;
}

void LocalView::keep(const std::string& key, const NameState& found, const NameState& state,
                     const IsOwn& is_own, Revision as_of, bool written) {
  auto before = own_times(found, is_own);
  const auto after = own_times(state, is_own);
  for (const auto& [grant, times] : after) before[grant];
  for (const auto& [grant, times] : before) {
    const auto it = after.find(grant);
    own_.change(key, grant,
                {.before = times,
                 .after = it == after.end() ? OwnGrants::Times{} : it->second,
                 .as_of = as_of,
                 .written = written});
  }
  remember_handed(key, state, written);
}

void LocalView::remember_handed(const std::string& key, const NameState& state, bool written) {
  const std::lock_guard lock(mutex_);
  Sightings& seen = sightings_[key];
  if (written) {
    std::erase_if(seen, [&](const auto& sighting) {
      return std::none_of(state.holders.begin(), state.holders.end(), [&](const Holder& holder) {
        return std::pair{holder.grant, holder.token} == sighting.first;
      });
    });
  }
  for (const Holder& holder : state.holders) {
    if (holder.state == HolderState::handed) {
      seen.try_emplace({holder.grant, holder.token}, holder.since);
    }
  }
  if (seen.empty()) sightings_.erase(key);
}

std::size_t LocalView::sightings(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto it = sightings_.find(key);
  return it == sightings_.end() ? 0 : it->second.size();
}

}  // namespace baton::store::etcd
