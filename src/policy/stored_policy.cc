#include "baton/policy.h"
#include "json/json.h"
#include "policy/validate.h"

namespace baton {
namespace {

using nlohmann::json;

json rules_to_json(const LockRules& rules) {
  json out = json::object();
  for (const Mode mode : rules.modes) out["modes"].push_back(short_name(mode));
  if (rules.max_ttl > Millis{0}) out["max_ttl_ms"] = rules.max_ttl.count();
  for (const auto& key : rules.metadata) out["metadata"].push_back(key);
  return out;
}

json subject_to_json(const SubjectPolicy& subject) {
  json out = rules_to_json(subject.rules);
  if (subject.predicate_scoped) out["scope"] = "predicate";
  if (!subject.parent.empty()) out["parent"] = subject.parent;
  if (!subject.description.empty()) out["description"] = subject.description;
  for (const auto& [name, rules] : subject.predicates) {
    out["predicates"][name] = rules_to_json(rules);
  }
  return out;
}

// Thrown and caught in this file: what the text has that this Baton does not write.
struct Unreadable {
  std::string what;
};

Mode mode_from(const json& value) {
  const auto mode = parse_mode(value.get<std::string>());
  if (!mode) throw Unreadable{"mode"};
  return *mode;
}

bool read_rule(const std::string& key, const json& value, LockRules& rules) {
  if (key == "modes") {
    for (const auto& mode : value.get_ref<const json::array_t&>()) {
      rules.modes.push_back(mode_from(mode));
    }
  } else if (key == "max_ttl_ms") {
    if (!value.is_number_integer()) throw Unreadable{key};
    const auto ttl = value.get<std::int64_t>();
    if (ttl <= 0 || ttl > kMaxTtl.count()) throw Unreadable{key};
    rules.max_ttl = Millis(ttl);
  } else if (key == "metadata") {
    rules.metadata = value.get<std::vector<std::string>>();
  } else {
    return false;
  }
  return true;
}

void read_predicates(const json& value, SubjectPolicy& subject) {
  for (const auto& [name, rules] : value.get_ref<const json::object_t&>()) {
    LockRules& into = subject.predicates[name];
    for (const auto& [key, rule] : rules.get_ref<const json::object_t&>()) {
      if (!read_rule(key, rule, into)) throw Unreadable{key};
    }
  }
}

SubjectPolicy subject_from(const json& value) {
  SubjectPolicy subject;
  for (const auto& [key, content] : value.get_ref<const json::object_t&>()) {
    if (read_rule(key, content, subject.rules)) continue;
    if (key == "scope") {
      if (content != "predicate") throw Unreadable{key};
      subject.predicate_scoped = true;
    } else if (key == "parent") {
      subject.parent = content.get<std::string>();
    } else if (key == "description") {
      subject.description = content.get<std::string>();
    } else if (key == "predicates") {
      read_predicates(content, subject);
    } else {
      throw Unreadable{key};
    }
  }
  return subject;
}

Policy policy_from(const json& document) {
  Policy policy;
  for (const auto& [key, value] : document.get_ref<const json::object_t&>()) {
    if (key == "version") {
      if (!value.is_number_integer()) throw Unreadable{key};
      policy.version = value.get<std::int64_t>();
      if (policy.version < 0) throw Unreadable{key};
    } else if (key == "draining") {
      policy.draining = value.get<bool>();
    } else if (key == "only_declared") {
      policy.only_declared = value.get<bool>();
    } else if (key == "subjects") {
      for (const auto& [name, subject] : value.get_ref<const json::object_t&>()) {
        policy.subjects[name] = subject_from(subject);
      }
    } else {
      throw Unreadable{key};
    }
  }
  return policy;
}

// The part that cannot be read may decide who conflicts, so no lock is granted without it.
Error unreadable(const std::string& what) {
  return {.code = Code::bad_store,
          .message = "the store's policy has something this Baton cannot read (" + what +
                     "); upgrade it, or 'baton policy apply --replace' another"};
}

}  // namespace

std::string to_stored(const Policy& policy) {
  json out = {{"version", policy.version}, {"subjects", json::object()}};
  if (policy.draining) out["draining"] = true;
  if (policy.only_declared) out["only_declared"] = true;
  for (const auto& [name, subject] : policy.subjects) {
    out["subjects"][name] = subject_to_json(subject);
  }
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<Policy> from_stored(std::string_view text) {
  if (text.size() > kMaxReservedNoteBytes) return unreadable("its size");
  const json document = parse_json(text);
  if (document.is_discarded()) return unreadable("not JSON");
  try {
    Policy policy = policy_from(document);
    if (const auto problem = policy::find_problem(policy)) return unreadable(problem->message);
    return policy;
  } catch (const Unreadable& problem) {
    return unreadable("'" + problem.what + "'");
  } catch (const json::exception&) {
    return unreadable("a value of the wrong kind");
  }
}

}  // namespace baton
