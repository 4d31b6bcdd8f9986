#include "policy/duration.h"

#include <array>
#include <charconv>
#include <cstdint>

#include "baton/name.h"

namespace baton::policy {
namespace {

struct Unit {
  std::string_view suffix;
  std::int64_t millis;
};

// Larger first: the order in which they may stand.
constexpr std::array<Unit, 4> kUnits = {Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1'000},
                                        Unit{"ms", 1}};

constexpr std::int64_t kMost = 1000LL * 3'600'000;

Error bad_duration(std::string_view text) {
  // A text that cannot be shown on one line is not repeated in the error.
  const bool showable = text.size() <= 64 && is_valid_utf8_text(text) &&
                        text.find_first_of("\r\n\t\x1b") == std::string_view::npos;
  return {.code = Code::bad_request,
          .message = (showable ? "'" + std::string(text) + "'" : std::string("this")) +
                     " is not a duration; write 500ms, 30s, 5m or 1h30m"};
}

}  // namespace

Result<Millis> parse_duration(std::string_view text) {
  std::string_view rest = text;
  std::int64_t total = 0;
  std::size_t next_unit = 0;
  if (rest.empty()) return bad_duration(text);
  while (!rest.empty()) {
    if (rest[0] < '0' || rest[0] > '9') return bad_duration(text);
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (problem != std::errc{} || number > kMost) return bad_duration(text);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const auto letters = rest.substr(0, rest.find_first_of("0123456789"));
    while (next_unit < kUnits.size() && kUnits[next_unit].suffix != letters) ++next_unit;
    if (next_unit == kUnits.size() || number > kMost / kUnits[next_unit].millis) {
      return bad_duration(text);
    }
    total += number * kUnits[next_unit].millis;
    rest.remove_prefix(letters.size());
    ++next_unit;
  }
  if (total > kMost) return bad_duration(text);
  return Millis(total);
}

std::string print_duration(Millis time) {
  std::int64_t left = time.count();
  if (left <= 0) return "0s";
  std::string out;
  for (const Unit& unit : kUnits) {
    if (left < unit.millis) continue;
    out += std::to_string(left / unit.millis);
    out += unit.suffix;
    left %= unit.millis;
  }
  return out;
}

}  // namespace baton::policy
