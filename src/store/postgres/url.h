#pragma once

#include <string_view>

#include "baton/result.h"

namespace baton::store::postgres {

// Refuses URLs that are not postgres:// ones, and such as libpq would take apart in the wrong place
// because of an unescaped character in the password: its messages then repeat what it takes for a
// host or a port. Everything else is for libpq to judge.
[[nodiscard]] BATON_EXPORT Result<void> check_url(std::string_view url);

}  // namespace baton::store::postgres
