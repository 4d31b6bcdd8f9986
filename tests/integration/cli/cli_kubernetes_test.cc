#include <fstream>

#include "integration/cli/cli_any_store.h"
#include "support/kube_server.h"
#include "support/postgres_server.h"  // free_port

namespace baton::test {
namespace {

struct KubernetesPlace {
  KubeServer server;
  std::string space;
  std::string fresh() {
    space = server.create_namespace();
    return server.store_url("admin", space);
  }
  // The same cluster at a port where nobody listens.
  std::string absent() {
    std::ifstream file(server.kubeconfig("admin", space));
    std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    const std::string address = server.address();
    text.replace(text.find(address), address.size(),
                 "https://127.0.0.1:" + std::to_string(free_port()));
    std::ofstream(dir / "config") << text;
    return "k8s://" + space + "?kubeconfig=" + (dir / "config").string();
  }
  TempDir dir{"absent"};
};
INSTANTIATE_TYPED_TEST_SUITE_P(Kubernetes, CliAnyStore, KubernetesPlace);

using CliKubernetes = CliAnyStore<KubernetesPlace>;

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

TEST_F(CliKubernetes, the_status_tells_the_namespace) {
  const auto status = baton({"store", "status"});
  EXPECT_EQ(status.status.code, 0) << status.err;
  EXPECT_NE(status.out.find("k8s://" + place().space), std::string::npos) << status.out;
}

TEST_F(CliKubernetes, who_has_no_rights_is_told_which) {
  env_["BATON_STORE"] = place().server.store_url("nobody", place().space);
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
