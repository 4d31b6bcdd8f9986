#include "policy/suggest.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace baton::policy {
namespace {

// Longer than any word we know by far; beyond it the table below would only cost time.
constexpr std::size_t kLongestCompared = 64;

// How many letters must be added, removed, changed or swapped with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

// For a message of one line.
std::string shown(std::string_view written) {
  std::string out;
  for (const char c : written.substr(0, kLongestCompared)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  if (written.size() <= kLongestCompared) return out;
  // Not in the middle of a character.
  while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0x80U) != 0) out.pop_back();
  return out + "…";
}

}  // namespace

std::string nearest(std::string_view written, std::span<const std::string_view> known) {
  if (written.size() > kLongestCompared) return {};
  std::string_view best;
  // A third of the letters may be wrong, so that short words do not suggest just anything.
  std::size_t distance = std::max<std::size_t>(1, written.size() / 3) + 1;
  for (const auto word : known) {
    const std::size_t found = edit_distance(written, word);
    if (found < distance) {
      distance = found;
      best = word;
    }
  }
  return std::string(best);
}

std::string unknown_word(std::string_view what, std::string_view written,
                         std::span<const std::string_view> known) {
  std::string out = "unknown " + std::string(what) + " '" + shown(written) + "'";
  if (const auto near = nearest(written, known); !near.empty()) {
    return out + "; did you mean '" + near + "'?";
  }
  out += "; there is ";
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) out += i + 1 == known.size() ? " and " : ", ";
    out += "'" + std::string(known[i]) + "'";
  }
  return out;
}

}  // namespace baton::policy
