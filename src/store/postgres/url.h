#pragma once

#include <string_view>

#include "baton/result.h"

namespace baton::store::postgres {

// Refuses URLs that are not postgres:// ones, and URLs that libpq would split in the wrong place
// because of an unescaped character in the password: its messages would then repeat a part of the
// password as a host or a port. Everything else is for libpq to judge.
[[nodiscard]] BATON_EXPORT Result<void> check_url(std::string_view url);

}  // namespace baton::store::postgres
