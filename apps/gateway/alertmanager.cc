#include "apps/gateway/alertmanager.h"

#include <array>
#include <utility>

#include "json/json.h"

namespace baton::gateway {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxAlerts = 256;
constexpr std::size_t kMaxDepth = 8;
constexpr std::size_t kMaxNamed = 100;  // bytes of a name in an answer

// Which label names a target, and what kind of thing it is. Of several the one that says most about
// what can be mended comes first.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kTargets = {{
    {"deployment", "Deployment"},
    {"statefulset", "StatefulSet"},
    {"daemonset", "DaemonSet"},
    {"job_name", "Job"},
    {"pod", "Pod"},
    {"persistentvolumeclaim", "PersistentVolumeClaim"},
    {"service", "Service"},
    {"node", "Node"},
    {"instance", "Instance"},
}};

Error bad(std::string message) {
  return {.code = Code::bad_request, .message = std::move(message)};
}

std::string text_of(const Json& labels, std::string_view name) {
  const auto found = labels.find(name);
  return found != labels.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Json target_of(const Json& labels) {
  if (const auto kind = text_of(labels, "kind"), name = text_of(labels, "name");
      !kind.empty() && !name.empty()) {
    return {{"kind", kind}, {"name", name}};
  }
  for (const auto& [label, kind] : kTargets) {
    if (const auto name = text_of(labels, label); !name.empty()) {
      return {{"kind", kind}, {"name", name}};
    }
  }
  return {};
}

Result<Signal> signal_of(const Json& alert, const Json& labels) {
  Json signal = {{"alertName", text_of(labels, "alertname")}, {"labels", labels}};
  signal["resource"] = target_of(labels);
  if (signal["resource"].is_null()) {
    return bad("no label says what is to be mended: set kind and name, or pod, node, …");
  }
  if (const auto ns = text_of(labels, "namespace"); !ns.empty()) signal["namespace"] = ns;
  const auto severity = text_of(labels, "severity");
  if (severity == "critical" || severity == "warning" || severity == "info") {
    signal["severity"] = severity;
  }
  if (const auto found = alert.find("annotations"); found != alert.end()) {
    signal["annotations"] = *found;
  }
  return parse_signal(signal.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace

Result<std::vector<Alert>> parse_notification(std::string_view text) {
  const Json json = is_shallow_json(text, kMaxDepth) ? parse_json(text) : Json();
  const auto alerts = json.is_object() ? json.find("alerts") : json.end();
  if (!json.is_object() || alerts == json.end() || !alerts->is_array()) {
    return bad("the body is no notification of an Alertmanager: it has no alerts");
  }
  if (text_of(json, "version") != "4") {
    return bad("only version 4 of Alertmanager's notifications is understood");
  }
  if (alerts->size() > kMaxAlerts) {
    return bad("more than " + std::to_string(kMaxAlerts) +
               " alerts in one notification: set max_alerts of the webhook");
  }
  std::vector<Alert> firing;
  for (const Json& alert : *alerts) {
    const auto labels = alert.is_object() ? alert.find("labels") : alert.end();
    if (!alert.is_object() || labels == alert.end() || !labels->is_object()) {
      firing.push_back({{}, bad("an alert has no labels")});
      continue;
    }
    if (text_of(alert, "status") == "resolved") continue;
    firing.push_back(
        {text_of(*labels, "alertname").substr(0, kMaxNamed), signal_of(alert, *labels)});
  }
  return firing;
}

}  // namespace baton::gateway
