#pragma once

#include <string_view>

namespace baton::event {

// At most kMaxContextId visible ASCII characters.
[[nodiscard]] bool is_context_id(std::string_view text);

// As https://www.w3.org/TR/trace-context asks.
[[nodiscard]] bool is_traceparent(std::string_view text);

}  // namespace baton::event
