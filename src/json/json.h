#pragma once

// nlohmann's json. Its parser and its printer are compiled once, in json.cc, and not in each file
// that uses them, which would take a third longer.

#include <string>

#include <nlohmann/json.hpp>

namespace baton {

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
