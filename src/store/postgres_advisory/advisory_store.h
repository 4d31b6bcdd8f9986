#pragma once

#include <functional>
#include <memory>
#include <string>

#include "baton/postgres_advisory_store.h"
#include "core/lock_table.h"

namespace baton::store {

struct PostgresAdvisoryOptions {
  std::string url;
  // For tests: a clock instead of the machine's and the server's. The server's own timers are off
  // then, and every answer waits for what the server has decided so far.
  std::function<core::StoreTime()> now;
};

Result<std::unique_ptr<LockStore>> open_postgres_advisory_store(PostgresAdvisoryOptions options,
                                                                Deadline deadline);

}  // namespace baton::store
