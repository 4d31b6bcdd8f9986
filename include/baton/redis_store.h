#pragma once

#include <memory>
#include <string_view>

#include "baton/store.h"
#include "baton/store_admin.h"

namespace baton {

// redis://[user:password@]host[:port][/db][?prefix=…&…], rediss://… with TLS, or
// redis+unix://[user:password@]/path[?db=…], Redis 6 or newer; docs/stores/redis.md has the options
// and what a failover can cost. At most four connections a process (in a cluster, to each node):
// two for requests, one for renewals alone, one that listens.
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<LockStore>> open_redis_store(std::string_view url,
                                                                               Deadline deadline);
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<StoreAdmin>> open_redis_admin(
    std::string_view url, Deadline deadline);

}  // namespace baton
