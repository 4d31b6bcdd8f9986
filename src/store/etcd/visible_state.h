#pragma once

#include "core/lock_table.h"

namespace baton::store::etcd {

// Removes expired holders, waiters and tombstones, and promotes nobody.
void drop_ended(core::NameState& state, core::StoreTime now);

// Whether two states tell others the same. Times do not: they only mean something to their owner,
// who keeps them itself.
[[nodiscard]] bool same_visible_state(const core::NameState& a, const core::NameState& b,
                                      core::StoreTime now);

// Whether the grant holds or waits at that time.
[[nodiscard]] bool lives(const core::NameState& state, GrantId grant, core::StoreTime now);

// The holder or else the waiter of this grant, or null.
[[nodiscard]] const core::Claimant* claimant(const core::NameState& state, GrantId grant);
[[nodiscard]] const core::Holder* holder_of(const core::NameState& state, GrantId grant);

}  // namespace baton::store::etcd
