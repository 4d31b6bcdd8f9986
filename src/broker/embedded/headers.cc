#include "broker/embedded/headers.h"

#include <cstdint>

namespace baton::broker {
namespace {

void put(std::string& out, std::string_view text) {
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out += static_cast<char>((text.size() >> shift) & 0xFF);
  }
  out += text;
}

std::optional<std::string> take(std::string_view& rest) {
  if (rest.size() < 4) return std::nullopt;
  std::size_t size = 0;
  for (unsigned i = 0; i < 4; ++i) {
    size |= std::size_t{static_cast<unsigned char>(rest[i])} << (8 * i);
  }
  rest.remove_prefix(4);
  if (size > rest.size()) return std::nullopt;
  std::string text(rest.substr(0, size));
  rest.remove_prefix(size);
  return text;
}

}  // namespace

std::string encode_headers(const std::map<std::string, std::string>& headers) {
  std::string out;
  for (const auto& [name, value] : headers) {
    put(out, name);
    put(out, value);
  }
  return out;
}

std::optional<std::map<std::string, std::string>> decode_headers(std::string_view bytes) {
  std::map<std::string, std::string> headers;
  while (!bytes.empty()) {
    auto name = take(bytes);
    auto value = name ? take(bytes) : std::nullopt;
    if (!value) return std::nullopt;
    headers.insert_or_assign(std::move(*name), std::move(*value));
  }
  return headers;
}

}  // namespace baton::broker
