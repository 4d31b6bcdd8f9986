#include "store/redis/layout.h"

#include <cstdint>

namespace baton::store::redis {
namespace {

std::string glob_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '*' || c == '?' || c == '[' || c == ']' || c == '\\' || c == '^') out += '\\';
    out += c;
  }
  return out;
}

// XMODEM, as Redis Cluster has it.
std::uint16_t crc16(std::string_view text) {
  std::uint16_t crc = 0;
  for (const char c : text) {
    crc = static_cast<std::uint16_t>(crc ^ (static_cast<unsigned char>(c) << 8));
    for (int i = 0; i < 8; ++i) {
      crc = static_cast<std::uint16_t>((crc & 0x8000U) != 0 ? (crc << 1) ^ 0x1021 : crc << 1);
    }
  }
  return crc;
}

}  // namespace

std::string Layout::pattern(std::string_view key_prefix) const {
  std::string start = start_;
  const auto colon = key_prefix.find(':');
  if (colon != std::string_view::npos) {
    start +=
        glob_escaped(key_prefix.substr(0, colon)) + "}" + glob_escaped(key_prefix.substr(colon));
  }
  return start + "*";
}

std::optional<std::string> Layout::key_in(std::string_view redis_key) const {
  if (!redis_key.starts_with(start_)) return std::nullopt;
  redis_key.remove_prefix(start_.size());
  // A region may have braces of its own, but no ':'.
  const auto colon = redis_key.find(':');
  const auto end = colon == std::string_view::npos ? redis_key.size() : colon;
  if (end == 0 || redis_key[end - 1] != '}') return std::nullopt;
  return std::string(redis_key.substr(0, end - 1)) + std::string(redis_key.substr(end));
}

int slot_of(std::string_view redis_key) {
  if (const auto open = redis_key.find('{'); open != std::string_view::npos) {
    const auto close = redis_key.find('}', open + 1);
    if (close != std::string_view::npos && close > open + 1) {
      redis_key = redis_key.substr(open + 1, close - open - 1);
    }
  }
  return crc16(redis_key) % 16384;
}

}  // namespace baton::store::redis
