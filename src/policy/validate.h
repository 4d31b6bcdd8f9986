#pragma once

#include <optional>
#include <string>

#include "baton/policy.h"

namespace baton::policy {

inline constexpr std::size_t kMaxLevels = 16;  // of one hierarchy

struct PolicyProblem {
  std::string subject;  // where
  std::string message;  // what, on one line
};

// The first thing about the schema half that cannot be: a parent that is not declared or its own
// descendant, or a predicate scope in a hierarchy.
[[nodiscard]] std::optional<PolicyProblem> find_problem(const Policy& policy);

// A subject or predicate as it may stand in a lock's name, else what is wrong with it.
[[nodiscard]] std::optional<std::string> find_word_problem(const std::string& word,
                                                           const std::string& what);

}  // namespace baton::policy
