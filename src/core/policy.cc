#include "baton/policy.h"

#include <algorithm>
#include <set>

#include "core/bad_request.h"

namespace baton {
namespace {

// Far above any real hierarchy; ends the walk over a policy that somebody built with a cycle.
constexpr std::size_t kMaxAncestors = 64;

Error denied(std::string message) { return {.code = Code::denied, .message = std::move(message)}; }

const SubjectPolicy* find_subject(const Policy& policy, const std::string& subject) {
  const auto it = policy.subjects.find(subject);
  return it == policy.subjects.end() ? nullptr : &it->second;
}

const std::string& parent_of(const Policy& policy, const std::string& subject) {
  static const std::string none;
  const SubjectPolicy* found = find_subject(policy, subject);
  return found == nullptr ? none : found->parent;
}

bool scoped(const Policy& policy, const std::string& subject) {
  const SubjectPolicy* found = find_subject(policy, subject);
  return found != nullptr && found->predicate_scoped;
}

// From the parent of `subject` up to the root.
std::vector<std::string> ancestors_of(const Policy& policy, const std::string& subject) {
  std::vector<std::string> chain;
  for (const std::string* next = &parent_of(policy, subject);
       !next->empty() && chain.size() < kMaxAncestors; next = &parent_of(policy, *next)) {
    chain.push_back(*next);
  }
  return chain;
}

bool has_children(const Policy& policy, const std::string& subject) {
  return std::any_of(policy.subjects.begin(), policy.subjects.end(),
                     [&](const auto& entry) { return entry.second.parent == subject; });
}

std::string seconds(Millis time) {
  const auto count = time.count();
  const auto unit = [&](long long size, const char* suffix) {
    return std::to_string(count / size) + suffix;
  };
  if (count > 0 && count % 3'600'000 == 0) return unit(3'600'000, "h");
  if (count > 0 && count % 60'000 == 0) return unit(60'000, "m");
  if (count % 1'000 == 0) return unit(1'000, "s");
  return unit(1, "ms");
}

std::string words(const std::vector<Mode>& modes) {
  std::string out;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    if (i > 0) out += i + 1 == modes.size() ? " or " : ", ";
    out += long_name(modes[i]);
  }
  return out;
}

// `who` says whose rules these are: a subject, or one predicate of it.
Result<void> check_rules(const LockRules& rules, const std::string& who, Mode mode, Millis ttl,
                         const Metadata& metadata) {
  if (!rules.modes.empty() &&
      std::find(rules.modes.begin(), rules.modes.end(), mode) == rules.modes.end()) {
    return denied("policy: " + who + " may be held " + words(rules.modes) + ", not " +
                  std::string(long_name(mode)));
  }
  if (rules.max_ttl > Millis{0} && ttl > rules.max_ttl) {
    return denied("policy: " + who + " may have a TTL of at most " + seconds(rules.max_ttl) +
                  ", asked for " + seconds(ttl));
  }
  for (const auto& key : rules.metadata) {
    if (!metadata.contains(key)) {
      return denied("policy: " + who + " must say its metadata '" + key + "'");
    }
  }
  return {};
}

// Collects targets, each key once.
class TargetList {
 public:
  void add(std::string key, Mode mode) {
    for (Target& target : targets_) {
      if (target.key != key) continue;
      target.mode = supremum(target.mode, mode);
      return;
    }
    targets_.push_back({std::move(key), mode});
  }
  std::vector<Target> take() { return std::move(targets_); }

 private:
  std::vector<Target> targets_;
};

// In a hierarchy every level adds a resource, so a page needs one for its fileset, one for its
// document and one of its own: with fewer it could not name its ancestors.
Result<void> check_depth(const Policy& policy, const LockName& name,
                         const std::vector<std::string>& ancestors) {
  if (ancestors.size() >= kMaxAncestors) {
    return denied("policy: the parents of '" + name.subject + "' go round in a circle");
  }
  if (ancestors.empty() && !has_children(policy, name.subject)) return {};
  const std::size_t depth = ancestors.size() + 1;
  if (name.resources.size() >= depth) return {};
  std::string form = name.subject;
  for (auto it = ancestors.rbegin(); it != ancestors.rend(); ++it) form += "/{" + *it + "}";
  form += "/{" + name.subject + "}";
  return denied("policy: '" + name.subject + "' is level " + std::to_string(depth) +
                " of a hierarchy and needs at least as many resources, not " +
                std::to_string(name.resources.size()) + ": name it " + form);
}

}  // namespace

Result<void> check(const Policy& policy, const LockName& name, Mode mode, Millis ttl,
                   const Metadata& metadata) {
  if (!is_mode(mode)) return bad_request("unknown mode");
  // Baton's own names are not the user's to forbid.
  if (name.region == kReservedRegion) return {};
  if (policy.draining) {
    Error error = denied("policy: it is being changed, nobody may acquire; try again in a moment");
    error.retryable = true;
    return error;
  }
  const SubjectPolicy* subject = find_subject(policy, name.subject);
  if (subject == nullptr) {
    if (!policy.only_declared) return {};
    return denied("policy: the subject '" + name.subject +
                  "' is not declared; declare it and run 'baton policy apply'");
  }
  const auto predicate = subject->predicates.find(name.predicate);
  if (predicate != subject->predicates.end()) {
    if (auto ok = check_rules(predicate->second, name.subject + "/" + name.predicate, mode, ttl,
                              metadata);
        !ok) {
      return ok;
    }
  }
  return check_rules(subject->rules, name.subject, mode, ttl, metadata);
}

std::string key_of(const Policy& policy, const LockName& name) {
  return key_of(name, scoped(policy, name.subject));
}

Result<std::vector<Target>> targets_for(const Policy& policy, std::span<const LockName> names,
                                        Mode mode) {
  if (names.empty()) return bad_request("no lock is named");
  if (!is_mode(mode)) return bad_request("unknown mode");
  TargetList targets;
  // All names before all ancestors, so that the tokens of a set start with those of its names.
  for (const LockName& name : names) targets.add(key_of(policy, name), mode);
  for (const LockName& name : names) {
    if (name.region == kReservedRegion) continue;
    const auto ancestors = ancestors_of(policy, name.subject);
    if (auto ok = check_depth(policy, name, ancestors); !ok) return ok.error();
    if (ancestors.empty()) continue;
    LockName above = name;
    for (const auto& subject : ancestors) {
      above.subject = subject;
      above.resources.pop_back();
      targets.add(key_of(above), ancestor_mode(mode));
    }
  }
  auto all = targets.take();
  if (all.size() > kMaxSet) {
    return Error{.code = Code::bad_request,
                 .message = "a request names at most " + std::to_string(kMaxSet) +
                            " locks, this one " + std::to_string(all.size()) +
                            " with its ancestors; ask for fewer at once"};
  }
  return all;
}

std::vector<std::string> changed_conflicts(const Policy& before, const Policy& after) {
  std::set<std::string> subjects;
  for (const auto& [subject, _] : before.subjects) subjects.insert(subject);
  for (const auto& [subject, _] : after.subjects) subjects.insert(subject);
  std::vector<std::string> changed;
  for (const auto& subject : subjects) {
    // The whole chain counts: a page takes other locks when its document gets another parent.
    if (scoped(before, subject) != scoped(after, subject) ||
        ancestors_of(before, subject) != ancestors_of(after, subject)) {
      changed.push_back(subject);
    }
  }
  return changed;
}

}  // namespace baton
