#pragma once

// Tokens from resource versions. Those grow with every write to the cluster, also over a delete. A
// write knows the version that it replaces, so the n-th token of an update is that version and n.
// A create does not know its own version until it is told; its tokens are written as n alone, and
// stand for the version before its own, above any update of that. Whoever writes next fills them in.

#include <cstdint>

#include "baton/store.h"

namespace baton::store::kubernetes {

inline constexpr int kTokenBits = 16;  // for the tokens of one write
inline constexpr Token kMostTokens = Token{1} << (kTokenBits - 1);
inline constexpr std::uint64_t kLastVersion = std::uint64_t{1} << (62 - kTokenBits);

// What the counter of the lock table starts from.
constexpr Token first_token(std::uint64_t replaced) { return replaced << kTokenBits; }

constexpr Token resolve_token(Token token, std::uint64_t version) {
  if (token >= Token{1} << kTokenBits || token == 0) return token;
  return ((version - 1) << kTokenBits) + kMostTokens + token;
}

}  // namespace baton::store::kubernetes
