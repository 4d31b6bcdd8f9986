#pragma once

// The tree of the sources, for tests that compare pages with it.

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace baton::test {

namespace fs = std::filesystem;

inline const fs::path kRoot = BATON_SOURCE_DIR;

inline std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace baton::test
