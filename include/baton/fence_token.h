#pragma once

// What a fence is shown of a lease. It is apart from baton/fence.h, because a lease gives it and
// needs no database.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/mode.h"
#include "baton/store.h"

namespace baton {

// How one name of a lease, or one ancestor of such a name, is held.
struct FenceToken {
  std::string key;  // "DEFAULT:page:fs-1:7:3"
  Mode mode = Mode::X;
  Token token = 0;
  bool operator==(const FenceToken&) const = default;
};

// A fence refuses tokens above this one. Those of all stores are far below it; one that is recorded
// by mistake leaves room above it for `baton fence rebase`.
inline constexpr Token kMaxFenceToken = Token{1} << 62;
inline constexpr std::size_t kMaxFenceTokens = 1024;  // in one call, and in one text

// Does the holder of `newer` end what the holder of `older` may write? Both are of one name.
[[nodiscard]] BATON_EXPORT bool overtakes(const FenceToken& newer, const FenceToken& older);

// The text of $BATON_FENCE, which the fences of all languages take:
//   [{"name":"DEFAULT:page:fs-1:7:3","mode":"X","token":"42"},…]
// Tokens are strings, because many languages read a JSON number as a double. Whole numbers are
// taken as well.
[[nodiscard]] BATON_EXPORT std::string print_fence_tokens(std::span<const FenceToken> tokens);
[[nodiscard]] BATON_EXPORT Result<std::vector<FenceToken>> parse_fence_tokens(
    std::string_view text);

}  // namespace baton
