#include "json/json.h"

template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;
template class nlohmann::detail::lexer<nlohmann::json, baton::JsonFromText>;
template class nlohmann::detail::lexer<nlohmann::json, baton::JsonFromView>;
template class nlohmann::detail::parser<nlohmann::json, baton::JsonFromText>;
template class nlohmann::detail::parser<nlohmann::json, baton::JsonFromView>;
