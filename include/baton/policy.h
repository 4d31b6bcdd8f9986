#pragma once

// What a deployment says about its own locks. Two halves, one document:
// the *schema* (scope, parent) decides who conflicts, lives in the store and has a version;
// the *rules* (modes, TTLs, required metadata) only forbid, before the store is asked.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/name.h"
#include "baton/store.h"

namespace baton {

struct LockRules {
  std::vector<Mode> modes;            // allowed ones; empty: all
  Millis max_ttl{0};                  // 0: no limit of its own
  std::vector<std::string> metadata;  // must be given
  bool operator==(const LockRules&) const = default;
};

struct SubjectPolicy {
  bool predicate_scoped = false;                // scope: predicate: its predicates do not conflict
  std::string parent;                           // a lock on this takes intent locks on its parent
  LockRules rules;                              // for every predicate
  std::map<std::string, LockRules> predicates;  // in addition, for one
  std::string description;
  bool operator==(const SubjectPolicy&) const = default;
};

struct Policy {
  std::int64_t version = 0;    // 0: the store has none
  bool draining = false;       // between two versions: nobody acquires
  bool only_declared = false;  // undeclared: deny — any other subject is denied
  std::map<std::string, SubjectPolicy> subjects;
  bool operator==(const Policy&) const = default;
};

// The YAML that people write (docs/policy.md), every unknown key refused with the nearest known one
// suggested.
[[nodiscard]] BATON_EXPORT Result<Policy> parse_policy(std::string_view yaml);

// The one-line form that stores keep in the note of BATON:schema.
[[nodiscard]] BATON_EXPORT std::string to_stored(const Policy& policy);
[[nodiscard]] BATON_EXPORT Result<Policy> from_stored(std::string_view text);

// Subjects whose conflicts differ between the two: only these make a change dangerous.
[[nodiscard]] BATON_EXPORT std::vector<std::string> changed_conflicts(const Policy& before,
                                                                      const Policy& after);

// `denied` with the reason, or nothing. Several rules may apply: the strictest wins.
[[nodiscard]] BATON_EXPORT Result<void> check(const Policy& policy, const LockName& name, Mode mode,
                                              Millis ttl, const Metadata& metadata);

// What the store files this name under: with its predicate where the schema says so.
[[nodiscard]] BATON_EXPORT std::string key_of(const Policy& policy, const LockName& name);

// What to ask the store for: every name at `mode`, its ancestors at the intent mode, each key once
// at the supremum. targets[0] is names[0]. A child's resources are its parent's and one more.
[[nodiscard]] BATON_EXPORT Result<std::vector<Target>> targets_for(const Policy& policy,
                                                                   std::span<const LockName> names,
                                                                   Mode mode);

}  // namespace baton
