#pragma once

#include <string>
#include <string_view>

#include "baton/clock.h"
#include "baton/result.h"

namespace baton::policy {

// 500ms, 30s, 5m, 1h30m: whole numbers with units, the larger units first, each at most once. "0s"
// is a duration; "5", "-5s", "1.5h" and " 5s" are not. At most 1000 hours, so that no caller can
// overflow.
[[nodiscard]] BATON_EXPORT Result<Millis> parse_duration(std::string_view text);

// In the same form: 90 s is 1m30s.
[[nodiscard]] BATON_EXPORT std::string print_duration(Millis time);

}  // namespace baton::policy
