#pragma once

// Private to src/http: answers that need no handler.

#include <string_view>

#include "http/message.h"
#include "http/router.h"

namespace baton::http {

// 503, come back soon.
[[nodiscard]] Response too_busy(std::string_view message);

// 429, come back soon.
[[nodiscard]] Response too_many_pending();

// 404, or 405 with the methods that the path takes.
[[nodiscard]] Response no_route(const Router::Match& match);

}  // namespace baton::http
