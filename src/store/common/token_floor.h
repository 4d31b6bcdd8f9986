#pragma once

#include "baton/fence_token.h"
#include "core/bad_request.h"

namespace baton::store {

// Of StoreAdmin::raise_tokens: half of what 63 bits can count to is left for the tokens to come.
inline Result<void> check_token_floor(Token floor) {
  if (floor < kMaxFenceToken) return {};
  return bad_request(
      "a token is below 2^62, so nothing was raised: if a fence has seen a higher one, clear it "
      "there by hand");
}

}  // namespace baton::store
