#include "policy/validate.h"

namespace baton::policy {
namespace {

std::optional<std::string> parent_problem(const Policy& policy, const std::string& subject,
                                          const SubjectPolicy& rules) {
  const auto parent = policy.subjects.find(rules.parent);
  if (parent == policy.subjects.end()) {
    return "the parent '" + rules.parent + "' of '" + subject + "' is not declared";
  }
  if (rules.predicate_scoped) {
    return "'" + subject +
           "' has a parent, so its scope cannot be predicate: the parent's locks would not see it";
  }
  if (parent->second.predicate_scoped) {
    return "'" + rules.parent + "' is the parent of '" + subject +
           "', so its scope cannot be predicate";
  }
  std::size_t levels = 1;
  for (auto at = parent; at != policy.subjects.end();
       at = policy.subjects.find(at->second.parent)) {
    if (at->first == subject) {
      return "'" + subject + "' is its own ancestor: the parents go round in a circle";
    }
    if (++levels > kMaxLevels) {
      return "the hierarchy above '" + subject + "' has more than " + std::to_string(kMaxLevels) +
             " levels, or goes round in a circle";
    }
    if (at->second.parent.empty()) break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> find_word_problem(const std::string& word, const std::string& what) {
  if (word.empty()) return "an empty " + what;
  LockName probe;
  probe.subject = what == "subject" ? word : "s";
  probe.predicate = what == "subject" ? "p" : word;
  if (auto ok = baton::validate(probe); !ok) {
    return "this " + what + " cannot be part of a lock's name (" + ok.error().message + ")";
  }
  return std::nullopt;
}

std::optional<PolicyProblem> find_problem(const Policy& policy) {
  for (const auto& [subject, rules] : policy.subjects) {
    if (auto problem = find_word_problem(subject, "subject")) return {{subject, *problem}};
    for (const auto& [predicate, _] : rules.predicates) {
      if (auto problem = find_word_problem(predicate, "predicate")) return {{subject, *problem}};
    }
    if (rules.parent.empty()) continue;
    if (auto problem = parent_problem(policy, subject, rules)) return {{subject, *problem}};
  }
  return std::nullopt;
}

}  // namespace baton::policy
