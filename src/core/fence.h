#pragma once

#include <span>
#include <vector>

#include "baton/fence_token.h"

namespace baton::core {

// The tokens that a fence checks for a grant: one for each name and ancestor that it holds.
[[nodiscard]] BATON_EXPORT std::vector<FenceToken> fence_tokens(std::span<const Target> targets,
                                                                std::span<const Token> tokens);

// The tokens in the order in which every fence locks its rows: by the bytes of the key, so that two
// writers never deadlock, and for one key the newest first, so that an older token in the same call
// is refused. Or `bad_request`.
[[nodiscard]] BATON_EXPORT Result<std::vector<FenceToken>> in_fence_order(
    std::span<const FenceToken> tokens);

}  // namespace baton::core
