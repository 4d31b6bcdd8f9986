#pragma once

// nlohmann's json. Its parser and its printer are compiled once, in json.cc, and not in each file
// that uses them, which would take a third longer.

#include <cstddef>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "baton/export.h"

namespace baton {

// Nothing of ours is deeper than 6 levels or longer than some MiB. The library handles a value that
// is nested without limit by recursion, which ends the process.
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonBytes = std::size_t{64} << 20;

// For all text that this process has not written itself. A text that is not JSON, too deep or too
// long gives a value that is_discarded().
[[nodiscard]] BATON_EXPORT nlohmann::json parse_json(std::string_view text);

// The same, but throws std::runtime_error.
[[nodiscard]] BATON_EXPORT nlohmann::json parse_json_or_throw(std::string_view text);

// Whether the brackets of a text are nested no deeper than that, whatever else is wrong with it.
[[nodiscard]] BATON_EXPORT bool is_shallow_json(std::string_view text,
                                                std::size_t max_depth = kMaxJsonDepth);

using JsonFromText = nlohmann::detail::iterator_input_adapter<std::string::const_iterator>;
using JsonFromView = nlohmann::detail::iterator_input_adapter<const char*>;

}  // namespace baton

// Others could not link with them in a shared library, which exports nothing of that kind.
#ifndef BATON_JSON_IS_SHARED
extern template class nlohmann::detail::serializer<nlohmann::json>;
extern template class nlohmann::detail::serializer<nlohmann::ordered_json>;
extern template class nlohmann::detail::lexer<nlohmann::json, baton::JsonFromText>;
extern template class nlohmann::detail::lexer<nlohmann::json, baton::JsonFromView>;
extern template class nlohmann::detail::parser<nlohmann::json, baton::JsonFromText>;
extern template class nlohmann::detail::parser<nlohmann::json, baton::JsonFromView>;
#endif
