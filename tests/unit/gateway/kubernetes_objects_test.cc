// The objects of baton-gateway on an API server that says what the test wants. Against a real one:
// tests/integration/gateway/gateway_kubernetes_test.cc.

#include "apps/gateway/kubernetes_objects.h"

#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "http/server.h"
#include "support/temp_dir.h"

namespace baton::gateway {
namespace {

using namespace std::chrono_literals;

std::string item(const std::string& name, const std::string& target,
                 const std::string& status = "{}") {
  return R"({"metadata":{"name":")" + name + R"(","uid":"u","resourceVersion":"7"},)" +
         R"("spec":{"fingerprint":"f","remediationRequest":"r","signal":{},"target":")" + target +
         R"("},"status":)" + status + "}";
}

class KubernetesObjectsTest : public ::testing::Test {
 protected:
  KubernetesObjectsTest() {
    const std::string path = "/apis/remediation.baton.dev/v1alpha1/namespaces/shop/{plural}";
    http::Router router;
    router.add("GET", path, [this](const http::Request& request) {
      std::string items;
      for (const auto& [name, text] : objects_[std::string(request.parameter("plural"))]) {
        items += (items.empty() ? "" : ",") + text;
      }
      return http::Response{.body = R"({"metadata":{},"items":[)" + items + "]}"};
    });
    router.add("GET", path + "/{name}", [this](const http::Request& request) {
      const auto& all = objects_[std::string(request.parameter("plural"))];
      const auto found = all.find(std::string(request.parameter("name")));
      if (found == all.end()) return http::Response{.status = 404, .body = "{}"};
      return http::Response{.body = found->second};
    });
    server_ = http::Server::start(std::move(router), {}, workers_).value();
    std::ofstream(dir_ / "config")
        << "clusters: [{name: c, cluster: {server: '" << server_->url() << "'}}]\n"
        << "users: [{name: u, user: {token: t}}]\n"
        << "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n";
  }
  ~KubernetesObjectsTest() override {
    server_.reset();
    workers_->stop();
  }

  Result<std::unique_ptr<ObjectStore>> open() const {
    return open_kubernetes_objects("k8s://shop?kubeconfig=" + (dir_ / "config").string());
  }

  test::TempDir dir_{"kubernetes-objects"};
  std::map<std::string, std::map<std::string, std::string>> objects_;  // by type and name
  std::shared_ptr<http::WorkerPool> workers_ = std::make_shared<http::WorkerPool>(1);
  std::unique_ptr<http::Server> server_;
};

TEST_F(KubernetesObjectsTest, one_that_cannot_be_read_is_left_alone) {
  objects_["remediationrequests"] = {
      {"odd", item("odd", "abc")},
      {"good", item("good", "Node/a")},
      {"running",
       item("running", "Node/b", R"({"phase":"Running","workflowExecution":"we-odd"})")}};
  objects_["workflowexecutions"] = {{"we-odd", item("we-odd", "abc")}};
  const auto objects = open();
  ASSERT_TRUE(objects) << objects.error().message;
  const auto startable = (*objects)->startable_requests(10);
  ASSERT_TRUE(startable) << startable.error().message;
  ASSERT_EQ(startable->size(), 1U);
  EXPECT_EQ(startable->front().name, "good");
  const auto concluded = (*objects)->conclude_requests(Time(1s));
  ASSERT_TRUE(concluded) << concluded.error().message;
  EXPECT_EQ(*concluded, 0U);
  EXPECT_FALSE((*objects)->request("odd").value());
}

}  // namespace
}  // namespace baton::gateway
