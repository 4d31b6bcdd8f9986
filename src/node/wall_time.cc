#include "node/wall_time.h"

#include <array>
#include <cstdio>

namespace baton::node {

std::string print_time(WallTime time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{floor<milliseconds>(time - day)};
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<int>(clock.hours().count()),
                static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()),
                static_cast<int>(clock.subseconds().count()));
  return text.data();
}

std::optional<WallTime> parse_time(std::string_view text) {
  using namespace std::chrono;
  int y = 0;
  unsigned mo = 0;
  unsigned d = 0;
  int h = 0;
  int mi = 0;
  int s = 0;
  int ms = 0;
  const std::string copy(text.substr(0, 40));
  if (std::sscanf(copy.c_str(), "%4d-%2u-%2uT%2d:%2d:%2d.%3dZ", &y, &mo, &d, &h, &mi, &s, &ms) !=
      7) {
    return std::nullopt;
  }
  const year_month_day date{year(y), month(mo), day(d)};
  if (!date.ok()) return std::nullopt;
  return sys_days(date) + hours(h) + minutes(mi) + seconds(s) + milliseconds(ms);
}

}  // namespace baton::node
