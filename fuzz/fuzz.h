#pragma once

// How a fuzz target is made: one file that takes bytes and checks a promise about them, a folder
// corpus/NAME with a few inputs to start from, and a line in CMakeLists.txt. `./dev fuzz` runs all.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace baton::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// The fuzzer keeps the input of a process that aborts.
inline void promise(bool kept, const char* what) {
  if (kept) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace baton::fuzz
