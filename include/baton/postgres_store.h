#pragma once

#include <memory>
#include <string_view>

#include "baton/store.h"
#include "baton/store_admin.h"

namespace baton {

// postgres://… or postgresql://… with every option that libpq takes. The schema must be there:
// StoreAdmin::migrate makes it, and nothing else runs DDL. At most four connections a process: two
// for requests, one for renewals alone, one that listens.
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<LockStore>> open_postgres_store(
    std::string_view url, Deadline deadline);
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<StoreAdmin>> open_postgres_admin(
    std::string_view url, Deadline deadline);

}  // namespace baton
