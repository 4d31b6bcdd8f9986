#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "baton/sqlite_store.h"
#include "core/lock_table.h"

namespace baton::store {

// For tests: the same store on a clock that the test moves, or on a machine that it makes up. What
// is left empty is this machine's own.
struct SqliteOptions {
  std::string path;
  std::function<core::StoreTime()> now;
  std::string boot_id;
  std::string time_namespace;
  std::optional<std::uint64_t> filesystem;  // as statfs calls its type
  bool drop_wakeups = false;
};

[[nodiscard]] Result<std::unique_ptr<LockStore>> open_sqlite_store_with(
    const SqliteOptions& options, Deadline deadline);

}  // namespace baton::store
