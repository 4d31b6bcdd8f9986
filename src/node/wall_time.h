#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "baton/node.h"

namespace baton::node {

// 2026-11-16T08:30:00.250Z
[[nodiscard]] BATON_EXPORT std::string print_time(WallTime time);
[[nodiscard]] BATON_EXPORT std::optional<WallTime> parse_time(std::string_view text);

// As notes keep it.
[[nodiscard]] inline std::int64_t to_millis(WallTime time) {
  return std::chrono::floor<Millis>(time.time_since_epoch()).count();
}
[[nodiscard]] inline WallTime from_millis(std::int64_t millis) {
  return WallTime(std::chrono::duration_cast<WallTime::duration>(Millis(millis)));
}

}  // namespace baton::node
