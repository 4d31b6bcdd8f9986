// deploy/kubernetes/deployment.yaml and cronjob.yaml: a real kube-apiserver takes every object and
// knows every field, the pods may do as little as possible, and `baton` works as it is started
// there, with the rights of rbac.yaml on the same server.

#include <gtest/gtest.h>

#include "deploy/deploy_files.h"
#include "deploy/kubernetes_objects.h"
#include "support/process.h"

namespace baton::test {
namespace {

using nlohmann::json;

json deployment() { return deploy_yaml("kubernetes/deployment.yaml").at(0); }
json cronjob() { return deploy_yaml("kubernetes/cronjob.yaml").at(0); }
json pod_of_deployment() { return deployment()["spec"]["template"]["spec"]; }
json pod_of_cronjob() { return cronjob()["spec"]["jobTemplate"]["spec"]["template"]["spec"]; }

class KubernetesBaton : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<KubeServer>();
    space = server->create_namespace();
    for (const json& object : deploy_yaml("kubernetes/rbac.yaml")) {
      if (object["kind"] != "Role" || object["metadata"]["name"] != "baton-locks") continue;
      ASSERT_EQ(object["rules"].size(), 1U);
      ASSERT_EQ(object["rules"][0]["resources"], json::array({"leases"}));
      server->allow("leaser", space, object["rules"][0]["verbs"].get<std::vector<std::string>>());
    }
    ASSERT_TRUE(poll_until([] { return server->may("leaser", space, {.verb = "watch"}); }));
  }
  static void TearDownTestSuite() { server.reset(); }

  // A container as it is started in a pod of that name, with a script in place of its program.
  static ProcessOptions started(const json& container, const std::string& pod,
                                const std::string& script) {
    std::vector<std::string> argv = {BATON_PROGRAM};
    EXPECT_EQ(container["command"], json::array({"/usr/bin/baton"}));
    for (const json& argument : container["args"]) {
      auto word = argument.get<std::string>();
      if (word == "--node=$(POD_NAME)") word = "--node=" + pod;
      if (word.starts_with("--metrics=")) word = "--metrics=127.0.0.1:0";
      argv.push_back(word);
    }
    EXPECT_EQ(argv.at(argv.size() - 2), "--");
    argv.pop_back();
    argv.insert(argv.end(), {"sh", "-c", script});
    EXPECT_EQ(container["env"][0], json({{"name", "BATON_STORE"}, {"value", "k8s://"}}));
    return {.argv = argv, .env = {{"BATON_STORE", server->store_url("leaser", space)}}};
  }

  static std::unique_ptr<KubeServer> server;
  static std::string space;
};
std::unique_ptr<KubeServer> KubernetesBaton::server;
std::string KubernetesBaton::space;

TEST_F(KubernetesBaton, a_server_takes_every_object_and_knows_every_field) {
  for (const char* file : {"deployment", "cronjob", "rbac"}) {
    for (const json& object : deploy_yaml("kubernetes/" + std::string(file) + ".yaml")) {
      EXPECT_EQ(kubernetes_refusal(*server, object), "") << file << " " << object["kind"];
    }
  }
}

TEST_F(KubernetesBaton, a_field_that_no_server_knows_is_found) {
  json object = cronjob();
  object["spec"]["jobTemplate"]["spec"]["backofLimit"] = 6;
  EXPECT_NE(kubernetes_refusal(*server, object).find("backofLimit"), std::string::npos);
}

TEST_F(KubernetesBaton, one_pod_of_the_deployment_leads_and_then_the_other) {
  const json container = pod_of_deployment()["containers"][0];
  const std::string script = "echo leads; exec sleep 600";
  Process first(started(container, "publisher-a", script));
  ASSERT_TRUE(first.wait_for_out("leads")) << first.err();
  Process second(started(container, "publisher-b", script));
  ASSERT_TRUE(second.wait_for_err("http://")) << second.err();  // its metrics, while it waits
  first.kill(SIGTERM);
  ASSERT_TRUE(first.wait());
  ASSERT_TRUE(second.wait_for_out("leads")) << second.err();
}

TEST_F(KubernetesBaton, a_second_pod_of_the_cron_job_fails_until_the_first_is_done) {
  const json container = pod_of_cronjob()["containers"][0];
  Process first(started(container, "report-1", "echo works; read end"));
  ASSERT_TRUE(first.wait_for_out("works")) << first.err();
  const auto second = run(started(container, "report-2", "echo works"));
  EXPECT_EQ(second.status.code, 75) << second.err;
  EXPECT_EQ(second.out, "");
  ASSERT_TRUE(first.write("\n"));
  ASSERT_TRUE(first.wait());
  const auto third = run(started(container, "report-3", "echo works"));
  EXPECT_TRUE(third.status.success()) << third.err;
  EXPECT_GT(cronjob()["spec"]["jobTemplate"]["spec"]["backoffLimit"], 0);
}

TEST(KubernetesBatonFiles, a_pod_has_no_right_that_it_does_not_need) {
  for (const json& pod : {pod_of_deployment(), pod_of_cronjob()}) {
    EXPECT_EQ(pod_weakness(pod), "");
    EXPECT_EQ(pod["serviceAccountName"], "baton");  // of rbac.yaml
    EXPECT_GT(pod["terminationGracePeriodSeconds"], 10 * 2);
  }
}

TEST(KubernetesBatonFiles, a_pod_that_can_be_entered_is_found) {
  json pod = pod_of_deployment();
  pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = false;
  EXPECT_EQ(pod_weakness(pod), "readOnlyRootFilesystem");
  pod = pod_of_cronjob();
  pod["securityContext"].erase("seccompProfile");
  EXPECT_EQ(pod_weakness(pod), "seccompProfile");
}

TEST(KubernetesBatonFiles, probes_and_annotations_name_the_port_that_baton_serves) {
  const json container = pod_of_deployment()["containers"][0];
  EXPECT_EQ(container["ports"][0]["name"], "metrics");
  const auto port = std::to_string(container["ports"][0]["containerPort"].get<int>());
  const json arguments = container["args"];
  EXPECT_NE(std::find(arguments.begin(), arguments.end(), "--metrics=0.0.0.0:" + port),
            arguments.end());
  for (const char* probe : {"startupProbe", "livenessProbe", "readinessProbe"}) {
    EXPECT_EQ(container[probe]["httpGet"], json({{"path", "/healthz"}, {"port", "metrics"}}));
  }
  const json annotations = deployment()["spec"]["template"]["metadata"]["annotations"];
  EXPECT_EQ(annotations["prometheus.io/port"], port);
}

}  // namespace
}  // namespace baton::test
