#include <csignal>

#include "integration/cli_support.h"
#include "support/kube_server.h"

namespace baton::test {
namespace {

class CliKubernetes : public CliTest {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<KubeServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override { env_["BATON_STORE"] = server_->store_url("admin", space_); }

  static inline std::unique_ptr<KubeServer> server_;
  std::string space_ = server_->create_namespace();
};

TEST_F(CliKubernetes, run_excludes_and_loses_as_on_any_store) {
  auto process = hold("job", "echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 75);
  EXPECT_EQ(baton({"run", "other", "--", "sh", "-c", "exit 7"}).status.code, 7);
  EXPECT_NE(baton({"lock", "find"}).out.find("job"), std::string::npos);
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "r"}).status.code, 0);
  ends(*process, 76);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"lock", "find"}).out, "no locks match\n");
}

TEST_F(CliKubernetes, a_waiter_runs_when_the_first_is_done) {
  auto first = hold("job", "echo ready; read -r _");
  auto second = start({"run", "job", "--wait", "60s", "--", "true"});
  EXPECT_TRUE(poll_until(
      [&] {
        return baton({"lock", "find", "--json"}).out.find("\"waiting\":1") != std::string::npos;
      },
      patience, std::chrono::milliseconds(100)));
  first->write("go\n");
  ends(*first, 0);
  ends(*second, 0);
}

// As a CronJob's pod: it looks once and goes, so it never sees a record for as long as its TTL.
TEST_F(CliKubernetes, a_try_gets_the_lock_of_a_holder_that_was_killed_once_it_has_expired) {
  auto dead = hold("job", "echo ready; read -r _", {"--ttl", "1s"});
  dead->kill(SIGKILL);
  dead->wait();
  EXPECT_EQ(baton({"run", "job", "--wait", "0s", "--", "true"}).status.code, 75);
  EXPECT_TRUE(poll_until(
      [&] {
        return baton({"run", "job", "--wait", "0s", "--", "true"}).status.code == 0;
      },
      std::chrono::seconds(60), std::chrono::milliseconds(300)));
}

TEST_F(CliKubernetes, the_status_tells_where_it_is) {
  const auto status = baton({"store", "status"});
  EXPECT_EQ(status.status.code, 0) << status.err;
  EXPECT_NE(status.out.find("k8s://" + space_), std::string::npos) << status.out;
  EXPECT_EQ(baton({"store", "migrate"}).status.code, 0);
}

TEST_F(CliKubernetes, a_policy_is_applied) {
  auto apply = start({"policy", "apply", "-"});
  apply->write("subjects: {job: {scope: predicate}}\n");
  apply->close_stdin();
  ends(*apply, 0);
  EXPECT_NE(baton({"policy", "show"}).out.find("scope: predicate"), std::string::npos);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliKubernetes, who_has_no_rights_is_told_which) {
  env_["BATON_STORE"] = server_->store_url("nobody", space_);
  refuses({"lock", "find"}, 1, "unauthorized", "'get'");
}

TEST_F(CliKubernetes, a_malformed_url_is_refused) {
  env_["BATON_STORE"] = "k8s://Not/A/Namespace";
  refuses({"lock", "find"}, 2, "bad_url", "namespace");
  env_["BATON_STORE"] = "k8s://x?kubeconfig=/nowhere/config";
  refuses({"lock", "find"}, 2, "bad_url", "/nowhere/config");
}

}  // namespace
}  // namespace baton::test
