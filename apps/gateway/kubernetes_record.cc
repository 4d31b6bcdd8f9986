#include "apps/gateway/kubernetes_record.h"

#include "apps/gateway/digest.h"
#include "apps/gateway/timestamp.h"
#include "json/json.h"

namespace baton::gateway {
namespace {

using Json = nlohmann::json;

constexpr const char* kVersion = "remediation.baton.dev/v1alpha1";
constexpr const char* kFingerprint = "remediation.baton.dev/fingerprint";
constexpr const char* kTarget = "remediation.baton.dev/target";
constexpr const char* kEnded = "remediation.baton.dev/ended";
constexpr std::size_t kLabelValue = 63;

std::string label(std::string_view text) { return digest(text).substr(0, kLabelValue); }

std::string encoded(std::string_view name) {
  std::string text(name);
  text.replace(text.find('/'), 1, "%2F");
  return text;
}

const Json& at(const Json& json, const char* place) {
  static const Json kNothing;
  const Json::json_pointer pointer(place);
  return json.is_object() && json.contains(pointer) ? json[pointer] : kNothing;
}

std::string text_at(const Json& json, const char* place) {
  const Json& value = at(json, place);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void read(const Json& json, RemediationRequest& request) {
  request.fingerprint = text_at(json, "/spec/fingerprint");
  request.signal = dump(at(json, "/spec/signal"));
  const Json& duplicates = at(json, "/status/duplicates");
  if (duplicates.is_number_integer()) request.duplicates = duplicates.get<std::int64_t>();
  request.last_seen = parse_timestamp(text_at(json, "/status/lastSeen"));
  if (request.last_seen == Time{}) request.last_seen = request.created;
  request.execution = text_at(json, "/status/workflowExecution");
}

void read(const Json& json, WorkflowExecution& execution) {
  execution.request = text_at(json, "/spec/remediationRequest");
  execution.finished = parse_timestamp(text_at(json, "/status/finished"));
}

template <typename Object>
std::optional<Record<Object>> record_of(const Json& json) {
  Record<Object> record;
  record.object.name = text_at(json, "/metadata/name");
  record.uid = text_at(json, "/metadata/uid");
  record.version = text_at(json, "/metadata/resourceVersion");
  const auto target = parse_target(text_at(json, "/spec/target"));
  if (record.object.name.empty() || record.uid.empty() || record.version.empty() || !target) {
    return std::nullopt;
  }
  record.object.target = *target;
  record.object.created = parse_timestamp(text_at(json, "/metadata/creationTimestamp"));
  if (const auto phase = parse_phase(text_at(json, "/status/phase"))) record.object.phase = *phase;
  record.finished = parse_timestamp(text_at(json, "/status/finished"));
  record.put_away = at(json, "/metadata/labels").contains(kEnded);
  read(json, record.object);
  return record;
}

std::string print(const char* kind, const std::string& name, const Target& target, Json labels,
                  Json spec, const Guard& guard) {
  labels["app.kubernetes.io/managed-by"] = "baton-gateway";
  labels[kTarget] = label(target.text());
  spec["target"] = target.text();
  spec["createdBy"] = guard.owner;
  spec["token"] = guard.token();
  return dump({{"apiVersion", kVersion},
               {"kind", kind},
               {"metadata", {{"name", name}, {"labels", std::move(labels)}}},
               {"spec", std::move(spec)}});
}

std::string active_with(const char* name, std::string_view value) {
  return select_active() + "%2C" + encoded(name) + "%3D" + label(value);
}

}  // namespace

template <typename Object>
std::optional<Record<Object>> parse_record(std::string_view json) {
  return record_of<Object>(parse_json(json));
}

template <typename Object>
std::optional<Page<Object>> parse_page(std::string_view json) {
  const Json list = parse_json(json);
  const Json& items = at(list, "/items");
  if (!items.is_array()) return std::nullopt;
  Page<Object> page;
  for (const Json& item : items) {
    auto record = record_of<Object>(item);
    if (record) {
      page.records.push_back(std::move(*record));
    } else {
      page.unreadable.push_back(text_at(item, "/metadata/name"));
    }
  }
  page.next = text_at(list, "/metadata/continue");
  return page;
}

template std::optional<Record<RemediationRequest>> parse_record(std::string_view json);
template std::optional<Record<WorkflowExecution>> parse_record(std::string_view json);
template std::optional<Page<RemediationRequest>> parse_page(std::string_view json);
template std::optional<Page<WorkflowExecution>> parse_page(std::string_view json);

std::string print_object(const RemediationRequest& request, const Guard& guard) {
  return print("RemediationRequest", request.name, request.target,
               {{kFingerprint, label(request.fingerprint)}},
               {{"fingerprint", request.fingerprint}, {"signal", parse_json(request.signal)}},
               guard);
}

std::string print_object(const WorkflowExecution& execution, const Guard& guard) {
  return print("WorkflowExecution", execution.name, execution.target, Json::object(),
               {{"remediationRequest", execution.request}}, guard);
}

std::string print_change(const Change& change, const std::string& version) {
  Json status = Json::object();
  if (change.phase) status["phase"] = to_string(*change.phase);
  if (change.finished) status["finished"] = timestamp(*change.finished);
  if (change.last_seen) status["lastSeen"] = timestamp(*change.last_seen);
  if (change.duplicates) status["duplicates"] = *change.duplicates;
  if (change.execution) status["workflowExecution"] = *change.execution;
  return dump({{"metadata", {{"resourceVersion", version}}}, {"status", std::move(status)}});
}

std::string print_put_away() { return dump({{"metadata", {{"labels", {{kEnded, "true"}}}}}}); }

std::string print_removal(const std::string& uid) {
  return dump({{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", uid}}}});
}

std::string select_active() { return "%21" + encoded(kEnded); }
std::string select_ended() { return encoded(kEnded); }
std::string select_active_of(const std::string& fingerprint) {
  return active_with(kFingerprint, fingerprint);
}
std::string select_active_of(const Target& target) { return active_with(kTarget, target.text()); }

}  // namespace baton::gateway
