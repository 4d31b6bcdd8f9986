#pragma once

#include "baton/fence.h"

namespace baton::store::redis {

// As fence(), but records nothing.
BATON_EXPORT Result<void> look_at_fence(redisContext* connection,
                                        std::span<const FenceToken> tokens);

}  // namespace baton::store::redis
