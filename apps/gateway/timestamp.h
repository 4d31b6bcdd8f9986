#pragma once

#include <string>
#include <string_view>

#include "apps/gateway/objects.h"

namespace baton::gateway {

// "2026-11-15T23:09:00.161Z"; read with or without the fraction, and 1970 if it is no time.
[[nodiscard]] std::string timestamp(Time time);
[[nodiscard]] Time parse_timestamp(std::string_view text);

}  // namespace baton::gateway
