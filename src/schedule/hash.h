#pragma once

#include <cstdint>
#include <string_view>

namespace baton::schedule {

// The same in every process and every version: replicas must agree on it. FNV-1a, and a last mix,
// because names of jobs often differ in their last letter only.
[[nodiscard]] constexpr std::uint64_t stable_hash(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t hash = 0xCBF29CE484222325ULL ^ (seed * 0x9E3779B97F4A7C15ULL);
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3ULL;
  }
  hash ^= hash >> 32U;
  hash *= 0xD6E8FEB86659FD93ULL;
  return hash ^ (hash >> 32U);
}

}  // namespace baton::schedule
