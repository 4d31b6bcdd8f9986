#pragma once

#include <string_view>

#include "baton/result.h"

namespace baton::cli {

// Refuses postgres:// URLs that libpq would take apart in the wrong place because of an unescaped
// character in the password: its messages then repeat what it takes for a host or a port.
// Everything else is for the store to judge.
[[nodiscard]] Result<void> check_url(std::string_view url);

}  // namespace baton::cli
