#pragma once

#include <memory>
#include <string_view>

#include "baton/store.h"
#include "baton/store_admin.h"

namespace baton {

// postgres-advisory://… with every option that libpq takes: locks are the server's own advisory
// locks, exclusive and shared. Each grant and each waiter has a session of its own, so a waiter is
// handed the lock by the server the moment its holder lets go or dies. Besides libpq's options:
//   key=N                       this numeric key for every name, to share a lock with others
//   baton_max_waiters=N         how many of this process may wait at once (32)
//   baton_max_idle_sessions=N   how many sessions are kept for the next locks (64)
//   baton_apply_timeout         as for postgres://
// PostgreSQL 14 or newer, never behind a transaction-pooling proxy. The schema must be there:
// StoreAdmin::migrate makes it. See docs/stores/postgres-advisory.md for what holds under which
// fault.
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<LockStore>> open_postgres_advisory_store(
    std::string_view url, Deadline deadline);
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<StoreAdmin>> open_postgres_advisory_admin(
    std::string_view url, Deadline deadline);

}  // namespace baton
