#include "support/kube_server.h"

#include <gtest/gtest.h>

namespace baton::test {
namespace {

const std::string kLeases = "/apis/coordination.k8s.io/v1/namespaces/";

TEST(KubeServer, keeps_its_data_over_a_crash_and_gives_each_user_its_rights) {
  KubeServer server;
  const std::string space = server.create_namespace();
  const std::string leases = kLeases + space + "/leases";
  EXPECT_EQ(server.call("GET", leases, "", "leaser").status, 403);
  server.allow("leaser", space, {"list", "create"});
  EXPECT_TRUE(poll_until([&] { return server.call("GET", leases, "", "leaser").status == 200; }));
  server.allow("leaser", space, {"create"});
  EXPECT_TRUE(poll_until([&] { return server.call("GET", leases, "", "leaser").status == 403; }));
  EXPECT_EQ(server.call("POST", leases, R"({"metadata":{"name":"one"}})", "leaser").status, 201);
  server.crash();
  server.start();
  EXPECT_EQ(server.call("GET", leases + "/one").status, 200);
}

TEST(KubeServer, takes_a_client_certificate) {
  KubeServer server;
  const auto made = server.certificate("leaser");
  http_client::HttpClient client(
      {.tls = {.ca_file = server.ca_file(), .cert_file = made.certificate, .key_file = made.key}});
  const auto answer = client.send({.url = server.address() + kLeases + "default/leases"},
                                  BootClock::now() + std::chrono::seconds(30));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 403);
  EXPECT_NE(answer->body.find("leaser"), std::string::npos) << answer->body;
}

}  // namespace
}  // namespace baton::test
