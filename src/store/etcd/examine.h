#pragma once

#include <vector>

#include "baton/store_admin.h"
#include "store/etcd/settings.h"

namespace baton::store::etcd {

[[nodiscard]] Result<std::vector<Finding>> examine(const Settings& settings, Millis ttl,
                                                   Deadline deadline);

// Whether this version of etcd has a leader that was replaced while it stood still revoke leases
// that the new one keeps (etcd-io/etcd#15247).
[[nodiscard]] bool revokes_live_leases(const std::string& version);

}  // namespace baton::store::etcd
