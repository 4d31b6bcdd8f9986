#pragma once

// Who is told what, and by which channel. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace baton::documents::notification {

inline constexpr std::string_view kEmail = "email";
inline constexpr std::string_view kSms = "sms";
inline constexpr std::string_view kPush = "push";

[[nodiscard]] bool is_channel(std::string_view channel);

// The channels of an event, unless its user has switched some off. None for other events.
[[nodiscard]] std::vector<std::string_view> channels_of(std::string_view event_type);

struct Text {
  std::string subject;
  std::string body;
};
[[nodiscard]] Text text_of(std::string_view event_type, const nlohmann::json& payload);

}  // namespace baton::documents::notification
