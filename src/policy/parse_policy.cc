#include <algorithm>
#include <array>
#include <map>

#include "baton/policy.h"
#include "policy/duration.h"
#include "policy/suggest.h"
#include "policy/validate.h"
#include "policy/yaml.h"

namespace baton {
namespace {

using policy::YamlNode;
using Kind = policy::YamlNode::Kind;

constexpr std::array<std::string_view, 2> kTopKeys = {"subjects", "undeclared"};
constexpr std::array<std::string_view, 7> kSubjectKeys = {
    "description", "parent", "scope", "modes", "max-ttl", "required-metadata", "predicates"};
constexpr std::array<std::string_view, 3> kRuleKeys = {"modes", "max-ttl", "required-metadata"};
constexpr std::array<std::string_view, 6> kModeWords = {"exclusive", "shared", "update",
                                                        "intent",    "IS",     "SIX"};
constexpr std::array<std::string_view, 2> kScopeWords = {"subject", "predicate"};
constexpr std::array<std::string_view, 2> kUndeclaredWords = {"allow", "deny"};

Error expected(const YamlNode& node, const std::string& where, Kind kind) {
  return policy::yaml_error(node.line, where + " must be " + std::string(policy::kind_name(kind)) +
                                           ", not " + std::string(policy::kind_name(node.kind)));
}

Error unknown_key(const YamlNode& item, std::span<const std::string_view> known) {
  return policy::yaml_error(item.key_line, policy::unknown_word("key", item.key, known));
}

// Text that a person reads on one line of a terminal.
Result<std::string> read_text(const YamlNode& node, const std::string& where) {
  if (node.kind != Kind::text) return expected(node, where, Kind::text);
  return node.text;
}

Result<Mode> read_mode(const YamlNode& node) {
  if (node.kind != Kind::text) return expected(node, "a mode", Kind::text);
  if (const auto mode = parse_mode(node.text)) return *mode;
  return policy::yaml_error(node.line, policy::unknown_word("mode", node.text, kModeWords));
}

Result<std::vector<Mode>> read_modes(const YamlNode& node) {
  std::vector<Mode> modes;
  if (node.kind == Kind::text) {
    auto mode = read_mode(node);
    if (!mode) return mode.error();
    return std::vector{*mode};
  }
  if (node.kind != Kind::list) return expected(node, "modes", Kind::list);
  for (const auto& item : node.items) {
    auto mode = read_mode(item);
    if (!mode) return mode.error();
    if (std::find(modes.begin(), modes.end(), *mode) == modes.end()) modes.push_back(*mode);
  }
  if (modes.empty()) {
    return policy::yaml_error(node.line, "modes is empty, which would forbid every lock");
  }
  return modes;
}

Result<Millis> read_max_ttl(const YamlNode& node) {
  if (node.kind != Kind::text) return expected(node, "max-ttl", Kind::text);
  auto ttl = policy::parse_duration(node.text);
  if (!ttl) return policy::yaml_error(node.line, ttl.error().message);
  if (*ttl <= Millis{0} || *ttl > kMaxTtl) {
    return policy::yaml_error(node.line, "max-ttl must be above zero and at most 24h");
  }
  return *ttl;
}

Result<std::vector<std::string>> read_metadata(const YamlNode& node) {
  if (node.kind != Kind::list) return expected(node, "required-metadata", Kind::list);
  std::vector<std::string> keys;
  for (const auto& item : node.items) {
    auto key = read_text(item, "a metadata key");
    if (!key) return key.error();
    if (key->empty()) return policy::yaml_error(item.line, "an empty metadata key");
    if (std::find(keys.begin(), keys.end(), *key) == keys.end()) keys.push_back(std::move(*key));
  }
  return keys;
}

// True if its key was one of the rules, which subjects and predicates have in common.
Result<bool> read_rule(const YamlNode& value, LockRules& rules) {
  if (value.key == "modes") {
    auto modes = read_modes(value);
    if (!modes) return modes.error();
    rules.modes = std::move(*modes);
  } else if (value.key == "max-ttl") {
    auto ttl = read_max_ttl(value);
    if (!ttl) return ttl.error();
    rules.max_ttl = *ttl;
  } else if (value.key == "required-metadata") {
    auto metadata = read_metadata(value);
    if (!metadata) return metadata.error();
    rules.metadata = std::move(*metadata);
  } else {
    return false;
  }
  return true;
}

Result<void> read_predicates(const YamlNode& node, SubjectPolicy& subject) {
  if (node.kind == Kind::none) return {};
  if (node.kind != Kind::map) return expected(node, "predicates", Kind::map);
  for (const auto& predicate : node.items) {
    if (auto problem = policy::find_word_problem(predicate.key, "predicate")) {
      return policy::yaml_error(predicate.key_line, *problem);
    }
    LockRules& rules = subject.predicates[predicate.key];
    if (predicate.kind == Kind::none) continue;
    if (predicate.kind != Kind::map) {
      return expected(predicate, "'" + predicate.key + "'", Kind::map);
    }
    for (const auto& rule : predicate.items) {
      auto known = read_rule(rule, rules);
      if (!known) return known.error();
      if (!*known) return unknown_key(rule, kRuleKeys);
    }
  }
  return {};
}

Result<void> read_scope(const YamlNode& node, SubjectPolicy& subject) {
  if (node.kind != Kind::text) return expected(node, "scope", Kind::text);
  if (node.text != "subject" && node.text != "predicate") {
    return policy::yaml_error(node.line, policy::unknown_word("scope", node.text, kScopeWords));
  }
  subject.predicate_scoped = node.text == "predicate";
  return {};
}

Result<void> read_subject_key(const YamlNode& value, SubjectPolicy& subject) {
  auto is_rule = read_rule(value, subject.rules);
  if (!is_rule) return is_rule.error();
  if (*is_rule) return {};
  if (value.key == "scope") return read_scope(value, subject);
  if (value.key == "predicates") return read_predicates(value, subject);
  if (value.key == "parent" || value.key == "description") {
    auto text = read_text(value, value.key);
    if (!text) return text.error();
    if (text->empty()) return policy::yaml_error(value.line, "an empty " + value.key);
    (value.key == "parent" ? subject.parent : subject.description) = std::move(*text);
    return {};
  }
  return unknown_key(value, kSubjectKeys);
}

Result<void> read_subjects(const YamlNode& node, Policy& policy) {
  if (node.kind == Kind::none) return {};
  if (node.kind != Kind::map) return expected(node, "subjects", Kind::map);
  std::map<std::string, int> lines;
  for (const auto& subject : node.items) {
    if (auto problem = policy::find_word_problem(subject.key, "subject")) {
      return policy::yaml_error(subject.key_line, *problem);
    }
    lines[subject.key] = subject.key_line;
    SubjectPolicy& into = policy.subjects[subject.key];
    if (subject.kind == Kind::none) continue;
    if (subject.kind != Kind::map) return expected(subject, "'" + subject.key + "'", Kind::map);
    for (const auto& value : subject.items) {
      if (auto ok = read_subject_key(value, into); !ok) return ok;
    }
  }
  if (const auto problem = policy::find_problem(policy)) {
    return policy::yaml_error(lines[problem->subject], problem->message);
  }
  return {};
}

}  // namespace

Result<Policy> parse_policy(std::string_view yaml) {
  auto document = policy::read_yaml(yaml);
  if (!document) return document.error();
  Policy policy;
  if (document->kind == Kind::none) {
    return Error{.code = Code::bad_request,
                 .message = "the policy is empty; write 'subjects: {}' if that is meant"};
  }
  if (document->kind != Kind::map) return expected(*document, "the policy", Kind::map);
  for (const auto& value : document->items) {
    if (value.key == "subjects") {
      if (auto ok = read_subjects(value, policy); !ok) return ok.error();
    } else if (value.key == "undeclared") {
      if (value.kind != Kind::text) return expected(value, "undeclared", Kind::text);
      if (value.text != "allow" && value.text != "deny") {
        return policy::yaml_error(value.line,
                                  policy::unknown_word("word", value.text, kUndeclaredWords));
      }
      policy.only_declared = value.text == "deny";
    } else {
      return unknown_key(value, kTopKeys);
    }
  }
  return policy;
}

}  // namespace baton
