#include "deploy/kubernetes_objects.h"

#include <map>

namespace baton::test {
namespace {

using nlohmann::json;

// Where a server files objects of that kind.
std::string path_for(const json& object) {
  static const std::map<std::string, std::string> plurals = {
      {"Namespace", "namespaces"},
      {"ServiceAccount", "serviceaccounts"},
      {"ConfigMap", "configmaps"},
      {"Service", "services"},
      {"PersistentVolumeClaim", "persistentvolumeclaims"},
      {"Deployment", "deployments"},
      {"CronJob", "cronjobs"},
      {"Role", "roles"},
      {"RoleBinding", "rolebindings"},
      {"NetworkPolicy", "networkpolicies"},
      {"PodDisruptionBudget", "poddisruptionbudgets"}};
  const auto version = object["apiVersion"].get<std::string>();
  const auto kind = object["kind"].get<std::string>();
  std::string path = version == "v1" ? "/api/v1" : "/apis/" + version;
  if (kind != "Namespace") {
    path += "/namespaces/" + object["metadata"]["namespace"].get<std::string>();
  }
  return path + "/" + plurals.at(kind);
}

// The first thing in `sent` that is not in `taken`: servers of Debian's age drop fields that they
// do not know, without a word. Empty: all is there.
std::string dropped(const json& sent, const json& taken, const std::string& where = "") {
  if (sent.is_object() && taken.is_object()) {
    for (const auto& [key, value] : sent.items()) {
      if (!taken.contains(key)) return where + "/" + key;
      if (auto below = dropped(value, taken[key], where + "/" + key); !below.empty()) return below;
    }
    return "";
  }
  if (sent.is_array() && taken.is_array() && sent.size() == taken.size()) {
    for (std::size_t i = 0; i < sent.size(); ++i) {
      auto below = dropped(sent[i], taken[i], where + "/" + std::to_string(i));
      if (!below.empty()) return below;
    }
    return "";
  }
  return sent == taken ? "" : where;
}

std::string posted(const KubeServer& server, json object, const std::string& query) {
  // These have the same fields, and came with the version after Debian's.
  for (const std::string group : {"policy", "batch"}) {
    if (object["kind"] != "Job" && object["apiVersion"] == group + "/v1") {
      object["apiVersion"] = group + "/v1beta1";
    }
  }
  const auto answer = server.call("POST", path_for(object) + query, object.dump());
  if (answer.status != 201) return answer.body;
  const std::string lost = dropped(object, json::parse(answer.body));
  return lost.empty() ? "" : "the server has dropped or changed " + lost;
}

}  // namespace

std::string kubernetes_refusal(const KubeServer& server, json object) {
  return posted(server, std::move(object), "?dryRun=All");
}

std::string kubernetes_create(const KubeServer& server, json object) {
  return posted(server, std::move(object), "");
}

std::string pod_weakness(const json& pod) {
  const json all = pod.value("securityContext", json::object());
  if (all.value("runAsNonRoot", false) != true) return "runAsNonRoot";
  if (all.value("runAsUser", 0) <= 0) return "runAsUser";
  if (all.value("/seccompProfile/type"_json_pointer, "") != "RuntimeDefault") {
    return "seccompProfile";
  }
  for (const char* shared : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (pod.contains(shared)) return shared;
  }
  for (const json& volume : pod.value("volumes", json::array())) {
    if (volume.contains("hostPath")) return "hostPath";
  }
  for (const json& container : pod["containers"]) {
    const json context = container.value("securityContext", json::object());
    if (context.value("allowPrivilegeEscalation", true)) return "allowPrivilegeEscalation";
    if (!context.value("readOnlyRootFilesystem", false)) return "readOnlyRootFilesystem";
    if (context.value("privileged", true)) return "privileged";
    if (context.value("capabilities", json()) != json({{"drop", {"ALL"}}})) return "capabilities";
    for (const char* kind : {"requests", "limits"}) {
      for (const char* what : {"cpu", "memory"}) {
        const auto& resources = container.value("resources", json::object());
        if (!resources.value(kind, json::object()).contains(what)) return "resources";
      }
    }
  }
  return "";
}

}  // namespace baton::test
