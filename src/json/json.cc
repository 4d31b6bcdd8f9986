#include "json/json.h"

#include <stdexcept>

template class nlohmann::detail::serializer<nlohmann::json>;
template class nlohmann::detail::serializer<nlohmann::ordered_json>;
template class nlohmann::detail::lexer<nlohmann::json, baton::JsonFromText>;
template class nlohmann::detail::lexer<nlohmann::json, baton::JsonFromView>;
template class nlohmann::detail::parser<nlohmann::json, baton::JsonFromText>;
template class nlohmann::detail::parser<nlohmann::json, baton::JsonFromView>;

namespace baton {

bool is_shallow_json(std::string_view text, std::size_t max_depth) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) return false;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return true;
}

nlohmann::json parse_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes || !is_shallow_json(text)) {
    return nlohmann::json(nlohmann::json::value_t::discarded);
  }
  return nlohmann::json::parse(text.data(), text.data() + text.size(), nullptr, false);
}

nlohmann::json parse_json_or_throw(std::string_view text) {
  if (text.size() > kMaxJsonBytes) throw std::runtime_error("JSON that is too long");
  if (!is_shallow_json(text)) throw std::runtime_error("JSON that is nested too deep");
  return nlohmann::json::parse(text.data(), text.data() + text.size());
}

}  // namespace baton
