// Ids that come from outside, and go into logs, tables and messages.

#include <algorithm>

#include "baton/event.h"
#include "event/context.h"

namespace baton {
namespace event {

bool is_context_id(std::string_view text) {
  return text.size() <= kMaxContextId &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c <= '~'; });
}

// version-trace-parent-flags. A later version may be longer, behind another dash.
bool is_traceparent(std::string_view text) {
  constexpr std::string_view kShape = "vv-tttttttttttttttttttttttttttttttt-pppppppppppppppp-ff";
  if (text.size() < kShape.size() || text.size() > kMaxContextId) return false;
  for (std::size_t i = 0; i < kShape.size(); ++i) {
    const char c = text[i];
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (kShape[i] == '-' ? c != '-' : !digit) return false;
  }
  const auto version = text.substr(0, 2);
  if (version == "ff" || (version == "00" && text.size() != kShape.size())) return false;
  if (text.size() > kShape.size() && text[kShape.size()] != '-') return false;
  if (!is_context_id(text)) return false;
  const auto zero = [](std::string_view part) {
    return part.find_first_not_of('0') == std::string_view::npos;
  };
  return !zero(text.substr(3, 32)) && !zero(text.substr(36, 16));
}

}  // namespace event

std::string usable_context_id(std::string_view from_outside) {
  if (!from_outside.empty() && event::is_context_id(from_outside)) return std::string(from_outside);
  return make_event_id();
}

std::string usable_traceparent(std::string_view from_outside) {
  return event::is_traceparent(from_outside) ? std::string(from_outside) : std::string();
}

}  // namespace baton
