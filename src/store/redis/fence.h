#pragma once

#include "baton/fence.h"

namespace baton::store::redis {

// As fence(), but records nothing.
BATON_EXPORT Result<void> look_at_fence(redisContext* connection, std::string_view key, Mode mode,
                                        Token token);

}  // namespace baton::store::redis
