#pragma once

#include "core/lock_table.h"

namespace baton::core {

// Brings a name up to `now`: drops expired holders, stale waiters and old tombstones, then promotes
// every waiter whose turn it is. Marks the state dirty only if a waiter was promoted.
void settle(LockTable& table, NameState& state, StoreTime now, Effects& effects);

// May `grant` hold `mode` beside every other holder, and past every waiter ahead of `turn`?
// Appends those in the way.
struct Blockers {
  std::vector<const Holder*> holders;
  std::vector<const Waiter*> waiters;
  [[nodiscard]] bool none() const { return holders.empty() && waiters.empty(); }
};
inline constexpr std::uint64_t kLastTurn = ~std::uint64_t{0};
Blockers blockers_of(const NameState& state, GrantId grant, Mode mode, std::uint64_t turn);

Holder* find_holder(NameState& state, GrantId grant);
Waiter* find_waiter(NameState& state, GrantId grant, bool converting);
void erase_waiter(NameState& state, GrantId grant, bool converting);

// Inserts a waiter: conversions first, then by turn.
void insert_waiter(NameState& state, Waiter waiter);

}  // namespace baton::core
