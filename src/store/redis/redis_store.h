#pragma once

#include <functional>
#include <memory>
#include <string>

#include "baton/redis_store.h"
#include "core/lock_table.h"

namespace baton::store {

struct RedisOptions {
  std::string url;
  std::function<core::StoreTime()> now;  // for tests: instead of the server's clock
};

Result<std::unique_ptr<LockStore>> open_redis_store(RedisOptions options, Deadline deadline);

}  // namespace baton::store
