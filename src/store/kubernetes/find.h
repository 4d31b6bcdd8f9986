#pragma once

#include "store/kubernetes/lease_api.h"
#include "store/kubernetes/name_cache.h"

namespace baton::store::kubernetes {

// Calls `visit(known)` for every Lease of Baton's in the namespace, in no order; an Error ends it.
[[nodiscard]] Result<void> visit_locks(LeaseApi& api, NameCache& cache, Deadline deadline,
                                       const std::function<void(const CachedName&)>& visit);

// As LockStore::find. The server knows Leases by the hashes of their names, so all are looked at.
[[nodiscard]] Result<Page<LockInfo>> find_locks(LeaseApi& api, NameCache& cache, const Query& query,
                                                Deadline deadline);

// Deletes Leases of which nothing is left but a holder that died, and that nobody has asked for
// since. Gives how many.
[[nodiscard]] Result<std::size_t> sweep_locks(LeaseApi& api, NameCache& cache, Deadline deadline);

}  // namespace baton::store::kubernetes
