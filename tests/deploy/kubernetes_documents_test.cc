// deploy/kubernetes/documents: a real kube-apiserver takes every object and knows every field, the
// pods may do as little as possible, and the program understands what it is started with.

#include <set>

#include <gtest/gtest.h>

#include "deploy/deploy_files.h"
#include "deploy/kubernetes_objects.h"
#include "support/kube_server.h"

namespace baton::test {
namespace {

using nlohmann::json;

const std::vector<std::string> kFiles = {"settings",   "network", "ingestion",   "validation",
                                         "enrichment", "audit",   "notification"};

std::vector<json> all_objects() {
  std::vector<json> objects;
  for (const std::string& file : kFiles) {
    for (json& object : deploy_yaml("kubernetes/documents/" + file + ".yaml")) {
      objects.push_back(std::move(object));
    }
  }
  return objects;
}

std::string name_of(const json& object) {
  return object.value("kind", "?") + " " + object.value("/metadata/name"_json_pointer, "?");
}

std::vector<json> of_kind(const std::string& kind) {
  std::vector<json> found;
  for (json& object : all_objects()) {
    if (object["kind"] == kind) found.push_back(std::move(object));
  }
  return found;
}

json object_of(const std::string& kind, const std::string& service) {
  for (json& object : of_kind(kind)) {
    if (object["metadata"]["name"] == "documents-" + service) return std::move(object);
  }
  throw std::runtime_error("there is no " + kind + " of " + service);
}

json pod_of(const std::string& service) {
  return object_of("Deployment", service)["spec"]["template"]["spec"];
}
json container_of(const std::string& service) { return pod_of(service)["containers"].at(0); }

class KubernetesDocuments : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<KubeServer>();
    server->create(
        "/api/v1/namespaces",
        json{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "documents"}}}}
            .dump());
  }
  static void TearDownTestSuite() { server.reset(); }

  static std::string refusal(json object) {
    if (object["kind"] == "Namespace") object["metadata"]["name"] = "documents-again";
    return kubernetes_refusal(*server, object);
  }

  static std::unique_ptr<KubeServer> server;
};
std::unique_ptr<KubeServer> KubernetesDocuments::server;

TEST_F(KubernetesDocuments, a_server_takes_every_object_and_knows_every_field) {
  std::size_t objects = 0;
  for (const json& object : all_objects()) {
    EXPECT_EQ(refusal(object), "") << name_of(object);
    ++objects;
  }
  EXPECT_EQ(objects, 2U + 5U + 5U * 4U + 1U);
}

TEST_F(KubernetesDocuments, a_field_that_no_server_knows_is_found) {
  json object = object_of("Deployment", "audit");
  object["spec"]["template"]["spec"]["securityContext"]["runAsNonroot"] = true;
  EXPECT_NE(refusal(object).find("runAsNonroot"), std::string::npos) << refusal(object);
  object = object_of("Deployment", "audit");
  object["spec"]["template"]["spec"]["containers"][0]["ports"][0]["containerPort"] = "http";
  EXPECT_NE(refusal(object), "");
}

TEST(KubernetesFiles, there_is_each_object_for_each_service) {
  for (const auto& [service, port] : document_services()) {
    for (const std::string kind :
         {"Deployment", "Service", "ServiceAccount", "PodDisruptionBudget"}) {
      EXPECT_EQ(object_of(kind, service)["metadata"]["namespace"], "documents") << service;
    }
  }
}

TEST(KubernetesFiles, the_program_understands_what_each_service_is_started_with) {
  const json settings_map = of_kind("ConfigMap").at(0);
  for (const auto& [service, port] : document_services()) {
    const json container = container_of(service);
    ServiceStart start{.arguments = container["args"].get<std::vector<std::string>>(),
                       .settings_file = settings_map["data"]["documents.yaml"]};
    for (const json& one : container["env"]) {
      start.environment[one["name"].get<std::string>()] =
          one["name"] == "DOCUMENTS_BROKER" ? "rabbitmqs://u:p@h/v" : "postgres://u:p@h/d";
    }
    const auto settings = settings_of(start);
    EXPECT_EQ(settings.service, service);
    EXPECT_EQ(settings.database, "postgres://u:p@h/d");
    EXPECT_EQ(settings.broker, "rabbitmqs://u:p@h/v");
    EXPECT_EQ(settings.listen, "0.0.0.0:" + std::to_string(port));
    EXPECT_EQ(container["ports"][0]["containerPort"], port);
    EXPECT_EQ(object_of("Service", service)["spec"]["ports"][0]["port"], port);
    const auto stop =
        std::chrono::seconds(pod_of(service)["terminationGracePeriodSeconds"].get<int>());
    EXPECT_GT(stop, 2 * settings.grace) << service;
    if (service == "notification") {
      EXPECT_EQ(container["volumeMounts"][1]["mountPath"], settings.spool);
    }
    EXPECT_EQ(container["volumeMounts"][0]["mountPath"], "/etc/documents");
    EXPECT_EQ(start.arguments.back(), "/etc/documents/documents.yaml");
  }
}

TEST(KubernetesFiles, a_pod_has_no_right_that_it_does_not_need) {
  for (const auto& [service, port] : document_services()) {
    const json pod = pod_of(service);
    EXPECT_EQ(pod["serviceAccountName"], "documents-" + service);
    EXPECT_EQ(pod["automountServiceAccountToken"], false);
    ASSERT_EQ(pod["containers"].size(), 1U);
    EXPECT_EQ(pod_weakness(pod), "") << service;
  }
}

TEST(KubernetesFiles, probes_ask_the_paths_that_a_service_has) {
  for (const auto& [service, port] : document_services()) {
    const json container = container_of(service);
    EXPECT_EQ(container["ports"][0]["name"], "http");
    for (const auto& [probe, path] :
         {std::pair("startupProbe", "/healthz"), std::pair("livenessProbe", "/healthz"),
          std::pair("readinessProbe", "/readyz")}) {
      EXPECT_EQ(container[probe]["httpGet"], json({{"path", path}, {"port", "http"}})) << service;
    }
    const json annotations =
        object_of("Deployment", service)["spec"]["template"]["metadata"]["annotations"];
    EXPECT_EQ(annotations["prometheus.io/port"], std::to_string(port));
    EXPECT_EQ(annotations["prometheus.io/path"], "/metrics");
  }
}

TEST(KubernetesFiles, a_replica_may_go_while_another_one_stays) {
  for (const auto& [service, port] : document_services()) {
    const json deployment = object_of("Deployment", service)["spec"];
    const json label = {{"app.kubernetes.io/name", "documents-" + service}};
    EXPECT_GE(deployment["replicas"], 2);
    EXPECT_EQ(deployment["selector"]["matchLabels"], label);
    EXPECT_EQ(deployment["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
    const json spread = deployment["template"]["spec"]["topologySpreadConstraints"].at(0);
    EXPECT_EQ(spread["labelSelector"]["matchLabels"], label);
    EXPECT_EQ(spread["topologyKey"], "kubernetes.io/hostname");
    const json budget = object_of("PodDisruptionBudget", service)["spec"];
    EXPECT_EQ(budget["selector"]["matchLabels"], label);
    EXPECT_LT(budget["maxUnavailable"], deployment["replicas"]);
    EXPECT_EQ(object_of("Service", service)["spec"]["selector"], label);
  }
}

TEST(KubernetesFiles, secrets_are_named_and_never_contained) {
  EXPECT_TRUE(of_kind("Secret").empty());
  for (const auto& [service, port] : document_services()) {
    std::set<std::string> keys;
    const json container = container_of(service);
    for (const json& one : container["env"]) {
      if (one["name"] == "DOCUMENTS_INSTANCE") continue;
      const json secret = one["valueFrom"]["secretKeyRef"];
      EXPECT_EQ(secret["name"], "documents-" + service);
      keys.insert(secret["key"].get<std::string>());
    }
    EXPECT_EQ(keys, (std::set<std::string>{"broker", "database"}));
  }
  for (const json& object : all_objects()) {
    EXPECT_EQ(object.dump().find("://"), std::string::npos) << name_of(object);
  }
}

TEST(KubernetesFiles, nobody_talks_to_anybody_unless_a_rule_says_so) {
  std::set<std::string> services;
  for (const auto& [service, port] : document_services()) services.insert("documents-" + service);
  bool nothing = false;
  for (const json& policy : of_kind("NetworkPolicy")) {
    const json spec = policy["spec"];
    nothing = nothing || (spec["podSelector"].empty() && !spec.contains("ingress") &&
                          !spec.contains("egress") && spec["policyTypes"].size() == 2);
    for (const char* way : {"ingress", "egress"}) {
      for (const json& rule : spec.value(way, json::array())) {
        EXPECT_FALSE(rule["ports"].empty()) << name_of(policy);
        for (const json& peer : rule.value(way == std::string("ingress") ? "from" : "to",
                                           json::array({json::object()}))) {
          EXPECT_FALSE(peer.empty()) << name_of(policy);
        }
        for (const json& port : rule["ports"]) {
          if (!port["port"].is_string()) continue;
          EXPECT_EQ(port["port"], "http") << name_of(policy);
        }
      }
    }
    const json labels = spec["podSelector"].value("matchLabels", json::object());
    if (labels.contains("app.kubernetes.io/name")) {
      EXPECT_TRUE(services.contains(labels["app.kubernetes.io/name"])) << name_of(policy);
    }
    for (const json& one : spec["podSelector"].value("matchExpressions", json::array())) {
      for (const json& value : one["values"]) EXPECT_TRUE(services.contains(value)) << value;
    }
  }
  EXPECT_TRUE(nothing);
}

}  // namespace
}  // namespace baton::test
