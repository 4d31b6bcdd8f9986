#include "http_client/base64.h"

#include <array>
#include <cstdint>

namespace baton::http_client {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 0xFF;

constexpr std::array<std::uint8_t, 256> reversed() {
  std::array<std::uint8_t, 256> table{};
  table.fill(kNone);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    table[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  }
  return table;
}
constexpr std::array<std::uint8_t, 256> kValues = reversed();

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      const bool padding = i + j > bytes.size();
      text += padding ? '=' : kAlphabet[group >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t i = 0; i < text.size(); i += 4) {
    std::uint32_t group = 0;
    const bool last = i + 4 == text.size();
    for (std::size_t j = 0; j < 4; ++j) {
      const bool filler = last && j >= 4 - padding;
      const std::uint8_t value = filler ? 0 : kValues[static_cast<unsigned char>(text[i + j])];
      if (value == kNone) return std::nullopt;
      group = group << 6 | value;
    }
    const std::size_t count = last ? 3 - padding : 3;
    for (std::size_t j = 0; j < count; ++j) {
      bytes += static_cast<char>(group >> (16 - 8 * j) & 0xFF);
    }
    if (last && padding > 0 && (group & ((1U << (8 * padding)) - 1)) != 0) return std::nullopt;
  }
  return bytes;
}

}  // namespace baton::http_client
