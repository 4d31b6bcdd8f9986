#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::core {

// Decodes one UTF-8 sequence at `i` and moves past it; nothing for an ill-formed one (overlong,
// surrogate, beyond U+10FFFF, cut short).
inline std::optional<std::uint32_t> next_code_point(std::string_view text, std::size_t& i) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(i);
  std::size_t length = 0;
  std::uint32_t point = 0;
  std::uint32_t smallest = 0;
  if (first < 0x80) {
    ++i;
    return first;
  }
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2, point = first & 0x1FU, smallest = 0x80;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3, point = first & 0x0FU, smallest = 0x800;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4, point = first & 0x07U, smallest = 0x10000;
  } else {
    return std::nullopt;
  }
  if (i + length > text.size()) return std::nullopt;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0U) != 0x80) return std::nullopt;
    point = point << 6 | (byte(i + k) & 0x3FU);
  }
  if (point < smallest || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) {
    return std::nullopt;
  }
  i += length;
  return point;
}

}  // namespace baton::core
