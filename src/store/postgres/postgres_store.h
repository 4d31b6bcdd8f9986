#pragma once

#include <functional>
#include <memory>
#include <string>

#include "baton/postgres_store.h"
#include "core/lock_table.h"
#include "store/common/contended.h"

namespace baton::store {

struct PostgresOptions {
  std::string url;
  std::function<core::StoreTime()> now;  // for tests: instead of the server's clock
  bool drop_wakeups = false;             // for tests: ignore every notification
  Millis contended_for = kContendedFor;  // how long a contended name skips the fast path
};

Result<std::unique_ptr<LockStore>> open_postgres_store(PostgresOptions options, Deadline deadline);

}  // namespace baton::store
