#pragma once

// What a page of the docs prints, for tests that do it.

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace baton::test {

inline std::string page(const std::string& name) {
  std::ifstream file(std::string(BATON_SOURCE_DIR "/docs/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The blocks of a kind: console, yaml, …
inline std::vector<std::string> blocks(const std::string& text, const std::string& kind) {
  std::vector<std::string> found;
  const std::string fence = "\n```";
  for (auto at = text.find(fence + kind + "\n"); at != std::string::npos;
       at = text.find(fence + kind + "\n", at)) {
    at += fence.size() + kind.size() + 1;
    const auto end = text.find(fence, at);
    found.push_back(text.substr(at, end + 1 - at));
    at = end;
  }
  return found;
}

}  // namespace baton::test
