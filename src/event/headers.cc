#include "event/headers.h"

#include "json/json.h"

namespace baton::event {

std::string print_headers(const Headers& headers) {
  if (headers.empty()) return "{}";
  return nlohmann::json(headers).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Headers> parse_headers(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed.is_object()) {
    return Error{.code = Code::bad_store, .message = "the headers are not a JSON object"};
  }
  Headers headers;
  for (const auto& [name, value] : parsed.items()) {
    headers[name] = value.is_string() ? value.get<std::string>() : value.dump();
  }
  return headers;
}

}  // namespace baton::event
