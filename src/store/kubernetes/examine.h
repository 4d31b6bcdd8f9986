#pragma once

#include <vector>

#include "baton/store_admin.h"
#include "store/kubernetes/lease_api.h"

namespace baton::store::kubernetes {

// As StoreAdmin::examine.
[[nodiscard]] Result<std::vector<Finding>> examine(LeaseApi& api, const Cluster& cluster,
                                                   Millis ttl, Deadline deadline);

}  // namespace baton::store::kubernetes
