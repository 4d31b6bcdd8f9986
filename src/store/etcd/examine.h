#pragma once

#include <vector>

#include "baton/store_admin.h"
#include "store/etcd/settings.h"

namespace baton::store::etcd {

[[nodiscard]] Result<std::vector<Finding>> examine(const Settings& settings, Millis ttl,
                                                   Deadline deadline);

}  // namespace baton::store::etcd
