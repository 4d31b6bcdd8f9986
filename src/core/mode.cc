#include "baton/mode.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace baton {
namespace {

constexpr std::size_t index(Mode mode) { return static_cast<std::size_t>(mode); }

// Rows: held; columns: asked; both in the order IS IX S U SIX X.
constexpr bool kCompatible[6][6] = {
    {true, true, true, true, true, false},      // IS
    {true, true, false, false, false, false},   // IX
    {true, false, true, true, false, false},    // S
    {true, false, true, false, false, false},   // U
    {true, false, false, false, false, false},  // SIX
    {false, false, false, false, false, false}  // X
};

// Rows: held; columns: asked. U includes S; SIX includes S, IX and U (it excludes every other
// writer below and beside, and its holder may become X).
constexpr bool kCovers[6][6] = {
    {true, false, false, false, false, false},  // IS
    {true, true, false, false, false, false},   // IX
    {true, false, true, false, false, false},   // S
    {true, false, true, true, false, false},    // U
    {true, true, true, true, true, false},      // SIX
    {true, true, true, true, true, true}        // X
};

constexpr std::string_view kShort[6] = {"IS", "IX", "S", "U", "SIX", "X"};
constexpr std::string_view kLong[6] = {"IS", "intent", "shared", "update", "SIX", "exclusive"};

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

bool is_mode(Mode mode) { return index(mode) < kAllModes.size(); }

bool compatible(Mode held, Mode asked) {
  return is_mode(held) && is_mode(asked) && kCompatible[index(held)][index(asked)];
}

bool covers(Mode held, Mode asked) {
  return is_mode(held) && is_mode(asked) && kCovers[index(held)][index(asked)];
}

Mode supremum(Mode a, Mode b) {
  if (covers(a, b)) return a;
  if (covers(b, a)) return b;
  // Only IX with S or U is left. SIX covers both.
  return Mode::SIX;
}

Mode converted(Mode held, Mode asked) {
  return covers(held, asked) ? asked : supremum(held, asked);
}

Mode ancestor_mode(Mode child) {
  return child == Mode::IS || child == Mode::S ? Mode::IS : Mode::IX;
}

std::string_view short_name(Mode mode) { return is_mode(mode) ? kShort[index(mode)] : "unknown"; }
std::string_view long_name(Mode mode) { return is_mode(mode) ? kLong[index(mode)] : "unknown"; }

std::optional<Mode> parse_mode(std::string_view text) {
  for (Mode mode : kAllModes) {
    if (same_word(text, short_name(mode)) || same_word(text, long_name(mode))) return mode;
  }
  return std::nullopt;
}

}  // namespace baton
