#pragma once

#include <memory>
#include <string_view>

#include "baton/store.h"
#include "baton/store_admin.h"

namespace baton {

// sqlite:PATH (also sqlite:///PATH), for all processes of one machine. Created if it is not there;
// refused on network filesystems.
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<LockStore>> open_sqlite_store(
    std::string_view url, Deadline deadline);
[[nodiscard]] BATON_EXPORT Result<std::unique_ptr<StoreAdmin>> open_sqlite_admin(
    std::string_view url, Deadline deadline);

}  // namespace baton
