#pragma once

// YAML as far as people need it to configure Baton: maps, lists and text. Anchors, aliases, tags
// and merge keys are refused, so that a short file cannot stand for a huge one.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "baton/result.h"

namespace baton::policy {

inline constexpr std::size_t kMaxYamlBytes = 1 << 18;
inline constexpr std::size_t kMaxYamlDepth = 8;

struct YamlNode {
  enum class Kind { none, text, list, map };

  Kind kind = Kind::none;
  int line = 0;
  std::string text;
  std::vector<YamlNode> items;  // of a list or a map, in the order written

  // Of an item of a map.
  std::string key;
  int key_line = 0;
};

// One document. Keys are text and unique in their map. Errors are one line, with its number.
[[nodiscard]] BATON_EXPORT Result<YamlNode> read_yaml(std::string_view document);

// bad_request: "line 3: …".
[[nodiscard]] BATON_EXPORT Error yaml_error(int line, std::string message);

// "text", "a list", "a map" or "nothing".
[[nodiscard]] BATON_EXPORT std::string_view kind_name(YamlNode::Kind kind);

}  // namespace baton::policy
