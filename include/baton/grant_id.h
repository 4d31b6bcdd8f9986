#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "baton/export.h"

namespace baton {

// Names one acquisition, for ever: made by the client before it asks, so that a retried request
// finds its own grant and two threads of one process exclude each other. Zero names none.
struct GrantId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  [[nodiscard]] bool empty() const { return high == 0 && low == 0; }
  auto operator<=>(const GrantId&) const = default;
};

// 32 hexadecimal digits.
[[nodiscard]] BATON_EXPORT std::string to_string(GrantId id);
[[nodiscard]] BATON_EXPORT std::optional<GrantId> parse_grant_id(std::string_view text);

// 128 random bits, unique over threads, processes, forks and machines. Never zero.
[[nodiscard]] BATON_EXPORT GrantId new_grant_id();

}  // namespace baton

template <>
struct std::hash<baton::GrantId> {
  std::size_t operator()(const baton::GrantId& id) const noexcept {
    return static_cast<std::size_t>(id.high ^ (id.low * 0x9E3779B97F4A7C15ULL));
  }
};
