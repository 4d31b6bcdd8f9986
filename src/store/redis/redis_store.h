#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "baton/redis_store.h"
#include "core/lock_table.h"
#include "store/common/contended.h"

namespace baton::store {

struct RedisOptions {
  std::string url;
  std::function<core::StoreTime()> now;  // for tests: instead of the server's clock
  Millis contended_for = kContendedFor;  // a name that was busy takes no fast path for so long
};

Result<std::unique_ptr<LockStore>> open_redis_store(RedisOptions options, Deadline deadline);

// `clock` is this machine's, in microseconds since 1970.
Result<std::unique_ptr<StoreAdmin>> open_redis_admin(
    std::string_view url, std::function<std::chrono::microseconds()> clock);

}  // namespace baton::store
