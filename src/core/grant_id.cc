#include "baton/grant_id.h"

#include <array>
#include <random>

namespace baton {

std::string to_string(GrantId id) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[15 - i] = kDigits[(id.high >> (4 * i)) & 15];
    text[31 - i] = kDigits[(id.low >> (4 * i)) & 15];
  }
  return text;
}

std::optional<GrantId> parse_grant_id(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  std::array<std::uint64_t, 2> halves{};
  for (std::size_t i = 0; i < 32; ++i) {
    const char c = text[i];
    int digit = 0;
    if (c >= '0' && c <= '9') {
      digit = c - '0';
    } else if (c >= 'a' && c <= 'f') {
      digit = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = c - 'A' + 10;
    } else {
      return std::nullopt;
    }
    halves[i / 16] = halves[i / 16] << 4 | static_cast<std::uint64_t>(digit);
  }
  return GrantId{halves[0], halves[1]};
}

GrantId new_grant_id() {
  // A fork copies this state; mixing in fresh randomness for each id costs more than a forked
  // child that keeps locking is worth: such a child must exec first.
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  GrantId id{random(), random()};
  if (id.empty()) id.low = 1;
  return id;
}

}  // namespace baton
