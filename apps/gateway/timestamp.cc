#include "apps/gateway/timestamp.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace baton::gateway {

std::string timestamp(Time time) {
  const auto millis = time.time_since_epoch().count();
  const std::time_t seconds = millis / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 40> text{};
  const auto size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(millis % 1000));
  return std::string(text.data(), size) + fraction.data();
}

Time parse_timestamp(std::string_view text) {
  const std::string copy(text);
  std::tm parts{};
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return {};
  const double fraction = *rest == '.' ? std::strtod(rest, nullptr) : 0;
  return Time(std::chrono::seconds(timegm(&parts)) + std::chrono::round<std::chrono::milliseconds>(
                                                         std::chrono::duration<double>(fraction)));
}

}  // namespace baton::gateway
