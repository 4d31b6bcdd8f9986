#include "apps/gateway/signal.h"

#include <algorithm>
#include <array>

#include "apps/gateway/digest.h"
#include "json/json.h"

namespace baton::gateway {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxNamespace = 63;
constexpr std::size_t kMaxKind = 63;
constexpr std::size_t kMaxName = 253;
constexpr std::size_t kMaxFingerprint = 128;
constexpr std::size_t kMaxPairs = 64;
constexpr std::size_t kMaxPairName = 253;
constexpr std::size_t kMaxPairValue = 4096;
constexpr std::size_t kMaxDepth = 8;
constexpr std::size_t kMaxPlainTarget = 200;
constexpr std::array<std::string_view, 7> kFields = {
    "alertName", "annotations", "fingerprint", "labels", "namespace", "resource", "severity"};
constexpr std::array<std::string_view, 3> kSeverities = {"critical", "warning", "info"};

Error bad(std::string message) {
  return {.code = Code::bad_request, .message = std::move(message)};
}

bool is_safe(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char character) {
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9') || character == '-' || character == '_' ||
           character == '.' || character == ':';
  });
}

// Letters, digits and -_.: are all that names in a cluster are made of.
Result<std::string> read_word(const Json& object, const char* field, std::size_t limit,
                              bool required) {
  const auto found = object.find(field);
  if (found == object.end() ||
      (found->is_string() && found->get_ref<const std::string&>().empty())) {
    if (required) return bad(std::string(field) + " is missing");
    return std::string();
  }
  if (!found->is_string()) return bad(std::string(field) + " is not a text");
  const auto& text = found->get_ref<const std::string&>();
  if (text.size() > limit) {
    return bad(std::string(field) + " has more than " + std::to_string(limit) + " bytes");
  }
  if (!is_safe(text)) {
    return bad(std::string(field) + " may have letters, digits and -_.: only");
  }
  return text;
}

Result<void> check_pairs(const Json& signal, const char* field) {
  const auto found = signal.find(field);
  if (found == signal.end()) return {};
  if (!found->is_object()) return bad(std::string(field) + " is not an object");
  if (found->size() > kMaxPairs) {
    return bad(std::string(field) + " has more than " + std::to_string(kMaxPairs) + " entries");
  }
  for (const auto& [name, value] : found->items()) {
    if (name.empty() || name.size() > kMaxPairName) return bad(std::string(field) + ": a bad name");
    if (!value.is_string()) return bad(std::string(field) + ": a value is not a text");
    if (value.get_ref<const std::string&>().size() > kMaxPairValue) {
      return bad(std::string(field) + ": a value has more than " + std::to_string(kMaxPairValue) +
                 " bytes");
    }
  }
  return {};
}

// Not even read if it is deeper than a signal is. No input throws.
Json parse(std::string_view text) {
  return is_shallow_json(text, kMaxDepth) ? parse_json(text) : Json(Json::value_t::discarded);
}

Result<void> check_fields(const Json& signal) {
  if (signal.is_discarded() || !signal.is_object()) return bad("the body is no JSON object");
  for (const auto& [name, value] : signal.items()) {
    if (std::find(kFields.begin(), kFields.end(), name) == kFields.end()) {
      return bad("'" + name.substr(0, 40) + "' is no field of a signal");
    }
  }
  const auto severity = signal.find("severity");
  if (severity == signal.end()) return {};
  if (!severity->is_string() ||
      std::find(kSeverities.begin(), kSeverities.end(), severity->get_ref<const std::string&>()) ==
          kSeverities.end()) {
    return bad("severity is critical, warning or info");
  }
  return {};
}

Result<Target> read_target(const Json& signal) {
  const auto resource = signal.find("resource");
  if (resource == signal.end()) return bad("resource is missing");
  if (!resource->is_object()) return bad("resource is not an object");
  for (const auto& [name, value] : resource->items()) {
    if (name != "kind" && name != "name") {
      return bad("'" + name.substr(0, 40) + "' is no field of a resource");
    }
  }
  auto ns = read_word(signal, "namespace", kMaxNamespace, false);
  if (!ns) return ns.error();
  auto kind = read_word(*resource, "kind", kMaxKind, true);
  if (!kind) return bad("resource: " + kind.error().message);
  auto name = read_word(*resource, "name", kMaxName, true);
  if (!name) return bad("resource: " + name.error().message);
  return Target{std::move(*ns), std::move(*kind), std::move(*name)};
}

}  // namespace

Result<Signal> parse_signal(std::string_view json) {
  const Json signal = parse(json);
  if (auto ok = check_fields(signal); !ok) return ok.error();
  auto alert = read_word(signal, "alertName", kMaxName, true);
  if (!alert) return alert.error();
  auto target = read_target(signal);
  if (!target) return target.error();
  auto fingerprint = read_word(signal, "fingerprint", kMaxFingerprint, false);
  if (!fingerprint) return fingerprint.error();
  for (const char* field : {"labels", "annotations"}) {
    if (auto ok = check_pairs(signal, field); !ok) return ok.error();
  }
  if (fingerprint->empty()) *fingerprint = fingerprint_of(*alert, *target);
  return Signal{.alert = std::move(*alert),
                .target = std::move(*target),
                .fingerprint = std::move(*fingerprint),
                .document = signal.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

// The parts are escaped, so that no two different lists of parts are joined to the same text.
std::string fingerprint_of(std::string_view alert, const Target& target) {
  return digest(escape_part(alert) + ":" + escape_part(target.ns) + ":" + escape_part(target.kind) +
                ":" + escape_part(target.name));
}

LockName signal_lock(const std::string& fingerprint) {
  return {.subject = "gw-lock", .predicate = "deduplicating", .resources = {fingerprint}};
}

LockName target_lock(const Target& target) {
  LockName name{.subject = "ro-lock", .predicate = "starting"};
  const std::string text = target.text();
  if (text.size() > kMaxPlainTarget) {
    name.resources = {"sha256", digest(text)};
    return name;
  }
  if (!target.ns.empty()) name.resources.push_back(target.ns);
  name.resources.push_back(target.kind);
  name.resources.push_back(target.name);
  return name;
}

}  // namespace baton::gateway
