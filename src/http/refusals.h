#pragma once

// Private to src/http: answers that need no handler, in the form that the owner wants.

#include <string_view>

#include "http/message.h"
#include "http/router.h"

namespace baton::http {

// 503, come back soon.
[[nodiscard]] Response too_busy(const Refusal& refusal, std::string_view message);

// 429, come back soon.
[[nodiscard]] Response too_many_pending(const Refusal& refusal);

// 404, or 405 with the methods that the path takes.
[[nodiscard]] Response no_route(const Refusal& refusal, const Router::Match& match);

}  // namespace baton::http
