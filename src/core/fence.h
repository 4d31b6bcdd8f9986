#pragma once

#include <span>
#include <vector>

#include "baton/fence_token.h"

namespace baton::core {

// What a fence is shown of a grant: all that it holds, names and ancestors.
[[nodiscard]] BATON_EXPORT std::vector<FenceToken> fence_tokens(std::span<const Target> targets,
                                                                std::span<const Token> tokens);

// The tokens in the order in which every fence takes its rows: by the bytes of the key, so that two
// writers never wait for each other, and the newest first, so that one that is overtaken by another
// of the same call is refused. Or `bad_request`.
[[nodiscard]] BATON_EXPORT Result<std::vector<FenceToken>> in_fence_order(
    std::span<const FenceToken> tokens);

}  // namespace baton::core
