#pragma once

#include <string_view>

#include "baton/result.h"
#include "store/redis/settings.h"

namespace baton::store::redis {

// The error that an error of the server means to a caller. in_doubt is set where a script may have
// written before it failed.
[[nodiscard]] Error error_for(std::string_view text, const Settings& settings);

}  // namespace baton::store::redis
