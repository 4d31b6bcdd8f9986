#pragma once

// Requests as parameters, rows as replies.

#include <span>
#include <string>
#include <vector>

#include "baton/store.h"
#include "core/lock_table.h"
#include "store/postgres/connection.h"

namespace baton::store::postgres {

using Batch = std::vector<const Request*>;

extern const Statement kAcquireAlike;
extern const Statement kAcquireFree;
extern const Statement kAcquireKnown;
extern const Statement kClaimMany;
extern const Statement kReleaseHeld;
extern const Statement kReleaseMany;
extern const Statement kAcquireOne;
extern const Statement kReleaseOne;
extern const Statement kClaimOne;
extern const Statement kQuick;
extern const Statement kQuickNoted;
extern const Statement kQuickRenew;
extern const Statement kRenewUnlocked;
extern const Statement kApply;
extern const Statement kFind;
extern const Statement kSweep;

// What the store's clock says instead of the server's, in tests.
using At = std::optional<core::StoreTime>;

// Also for kAcquireKnown.
[[nodiscard]] Params acquire_free_params(const Request& request, At at);
// All are alike.
[[nodiscard]] Params acquire_alike_params(const Batch& acquires, At at);
[[nodiscard]] Params acquire_one_params(const Request& request, At at);
// Also for kReleaseHeld.
[[nodiscard]] Params release_one_params(const Request& request, At at);
[[nodiscard]] Params claim_one_params(const Request& request, At at);
[[nodiscard]] Params claim_many_params(const Batch& claims, At at);
[[nodiscard]] Params quick_params(const Batch& acquires, At at);
[[nodiscard]] Params quick_noted_params(const Batch& acquires, const Batch& releases, At at);
// For kQuickRenew, kRenewUnlocked and kReleaseMany.
[[nodiscard]] Params grants_params(const Batch& batch, At at);
[[nodiscard]] Params apply_params(const Batch& requests, At at);

// A row of acquire_free or acquire_known, which has a token in that column and the
// note behind it.
[[nodiscard]] Reply granted_reply(const Rows& rows, int row, int token);
// A row of quick, quick_noted, quick_renew, acquire_alike, claim_many or release_many, which has
// the key before it.
[[nodiscard]] Reply quick_reply(const Rows& rows, int row);

// A row of acquire_one, release_one, claim_one or apply; gives also which request it answers, from
// 0.
[[nodiscard]] std::pair<std::size_t, Reply> reply_of(const Rows& rows, int row,
                                                     const Batch& requests);

// A row of find.
[[nodiscard]] LockInfo info_of(const Rows& rows, int row);

// The NOTIFY channel that stands for a channel of the seam: short, plain, one each.
[[nodiscard]] std::string notify_channel(std::string_view channel);

// Whether the row of its one name may decide the request alone.
[[nodiscard]] bool is_simple(const Request& request);

// The same, but with a note to read or write.
[[nodiscard]] bool is_noted(const Request& request);

}  // namespace baton::store::postgres
