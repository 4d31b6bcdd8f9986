#pragma once

#include <cstdint>
#include <cstdlib>

namespace baton::test {

// What a random test begins with: always the same, so that a run can be repeated, unless
// $BATON_TEST_SEED says otherwise, as ./dev torture does.
inline std::uint64_t seed_or(std::uint64_t usual) {
  const char* given = std::getenv("BATON_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : usual;
}

}  // namespace baton::test
