#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace baton::http {

inline constexpr std::size_t kMaxSegments = 32;
inline constexpr std::size_t kMaxQueryPairs = 64;

// The target of a request line, taken apart.
struct RequestTarget {
  std::string path;                   // as sent
  std::vector<std::string> segments;  // decoded; "/" has none
  Pairs query;                        // decoded
};

// Nothing for what is not a path: another form than /path?query or scheme://host/path?query, a
// broken %XX, control characters or bytes that are not UTF-8, more parts than the limits.
[[nodiscard]] BATON_EXPORT std::optional<RequestTarget> parse_target(std::string_view text);

}  // namespace baton::http
