#pragma once

#include <cstdint>
#include <random>

namespace baton::store {

// For pauses: enough to keep clients apart, and no secret.
inline std::uint64_t jitter_bits() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

}  // namespace baton::store
