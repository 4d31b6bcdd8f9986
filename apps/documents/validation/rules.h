#pragma once

// The rules that a document must keep, all of them here. Pure: the same document always has the
// same verdict. A broken rule is an outcome of the business, never a failure.

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace baton::documents::validation {

struct BrokenRule {
  std::string code;     // stable, for programs
  std::string message;  // for people
  bool operator==(const BrokenRule&) const = default;
};

// `document` is the payload of DocumentUploaded. Empty: valid.
[[nodiscard]] std::vector<BrokenRule> broken_rules(const nlohmann::json& document);

}  // namespace baton::documents::validation
