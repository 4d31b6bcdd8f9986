#include "store/kubernetes/server_time.h"

#include <time.h>

#include <array>
#include <charconv>
#include <cstdio>

namespace baton::store::kubernetes {
namespace {

// Dates are cut to the second and answers are under way for a while; beyond this the server's clock
// has been set back.
constexpr ServerTime kSetBack = std::chrono::seconds(3);

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

std::optional<int> digits(std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<ServerTime> parse_http_date(std::string_view text) {
  constexpr std::string_view kShape = "Sun, 06 Nov 1994 08:49:37 GMT";
  if (text.size() != kShape.size() || !text.ends_with(" GMT")) return std::nullopt;
  tm parts{};
  for (std::size_t i = 0; i < kMonths.size(); ++i) {
    if (text.substr(8, 3) == kMonths[i]) parts.tm_mon = static_cast<int>(i);
  }
  const auto day = digits(text.substr(5, 2));
  const auto year = digits(text.substr(12, 4));
  const auto hour = digits(text.substr(17, 2));
  const auto minute = digits(text.substr(20, 2));
  const auto second = digits(text.substr(23, 2));
  if (!day || !year || !hour || !minute || !second) return std::nullopt;
  if (text.substr(8, 3) != kMonths[static_cast<std::size_t>(parts.tm_mon)]) return std::nullopt;
  parts.tm_mday = *day;
  parts.tm_year = *year - 1900;
  parts.tm_hour = *hour;
  parts.tm_min = *minute;
  parts.tm_sec = *second;
  return std::chrono::seconds(timegm(&parts));
}

std::string print_micro_time(ServerTime time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const time_t seconds = whole.count();
  tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ",
                parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min,
                parts.tm_sec, static_cast<int>((time - whole).count()));
  return text.data();
}

void ServerClock::heard(ServerTime date, core::StoreTime at) {
  const ServerTime ahead = date - at;
  const std::lock_guard lock(mutex_);
  if (!ahead_ || ahead > *ahead_ || *ahead_ - ahead > kSetBack) ahead_ = ahead;
}

ServerTime ServerClock::at(core::StoreTime local) const {
  const std::lock_guard lock(mutex_);
  return ahead_ ? local + *ahead_ : ServerTime{0};
}

}  // namespace baton::store::kubernetes
