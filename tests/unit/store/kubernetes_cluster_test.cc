// Where the cluster is and who we are there: URLs, kubeconfigs and service accounts.

#include "store/kubernetes/cluster.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "http_client/base64.h"
#include "support/temp_dir.h"

namespace baton::store::kubernetes {
namespace {

class ClusterTest : public ::testing::Test {
 protected:
  test::TempDir dir{"cluster"};
  std::map<std::string, std::string> environment{{"HOME", dir.path().string()}};

  Result<Cluster> find(const std::string& url) {
    return find_cluster(url, {.variable = [this](const char* name) { return environment[name]; },
                              .service_account = dir.path().string()});
  }
  std::string refusal(const std::string& url) {
    const auto cluster = find(url);
    return cluster ? "taken" : cluster.error().message;
  }
  std::string write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((dir / name).parent_path());
    std::ofstream(dir / name) << text;
    return (dir / name).string();
  }
  static std::string config(const std::string& user, const std::string& cluster = "") {
    return "current-context: here\n"
           "contexts:\n"
           "- {name: other, context: {cluster: c, user: nobody}}\n"
           "- {name: here, context: {cluster: c, user: u, namespace: work}}\n"
           "clusters:\n"
           "- {name: c, cluster: {server: 'https://10.0.0.1:6443/'" +
           cluster +
           "}}\n"
           "users:\n"
           "- {name: u, user: {" +
           user + "}}\n";
  }
};

TEST_F(ClusterTest, a_kubeconfig_says_where_and_who) {
  const std::string path = write("config", config("token: secret", ", certificate-authority: ca"));
  const auto cluster = find("k8s://?kubeconfig=" + path);
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->address, "https://10.0.0.1:6443");
  EXPECT_EQ(cluster->space, "work");
  EXPECT_EQ(cluster->token, "secret");
  EXPECT_EQ(cluster->tls.ca_file, (dir / "ca").string()) << "relative to the kubeconfig";
  EXPECT_TRUE(cluster->tls.verify);
  EXPECT_TRUE(cluster->warnings.empty());
  EXPECT_EQ(find("k8s://locks?kubeconfig=" + path)->space, "locks");
  EXPECT_EQ(find("k8s://locks/?kubeconfig=" + path)->space, "locks");
}

TEST_F(ClusterTest, certificates_are_data_or_files) {
  const std::string pem = "-----BEGIN CERTIFICATE-----\n";
  const std::string path =
      write("config", config("client-certificate-data: " + http_client::to_base64(pem) +
                                 ", client-key: key.pem, tokenFile: /var/token",
                             ", certificate-authority-data: " + http_client::to_base64(pem)));
  const auto cluster = find("k8s://?kubeconfig=" + path);
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->tls.ca_pem, pem);
  EXPECT_EQ(cluster->tls.cert_pem, pem);
  EXPECT_EQ(cluster->tls.key_file, (dir / "key.pem").string());
  EXPECT_EQ(cluster->token_file, "/var/token");
}

TEST_F(ClusterTest, an_insecure_cluster_is_taken_only_where_it_says_so_and_warned_about) {
  const std::string path =
      write("config", config("token: secret", ", insecure-skip-tls-verify: true"));
  const auto cluster = find("k8s://?kubeconfig=" + path);
  ASSERT_TRUE(cluster);
  EXPECT_FALSE(cluster->tls.verify);
  ASSERT_EQ(cluster->warnings.size(), 1U);
}

TEST_F(ClusterTest, a_user_that_needs_a_program_is_refused_with_what_to_do) {
  for (const std::string user : {"exec: {command: aws, args: [secret]}",
                                 "auth-provider: {name: gcp, config: {a: secret}}"}) {
    const std::string text = refusal("k8s://?kubeconfig=" + write("config", config(user)));
    EXPECT_NE(text.find("tokenFile"), std::string::npos) << text;
    EXPECT_EQ(text.find("secret"), std::string::npos) << text;
  }
}

TEST_F(ClusterTest, a_broken_kubeconfig_is_refused_without_its_secrets) {
  for (const std::string& broken :
       {std::string("token: secret: x"), std::string("[secret"), std::string("secret"),
        std::string(), config("client-key-data: secret!"), config("token: [secret]")}) {
    const std::string text = refusal("k8s://?kubeconfig=" + write("config", broken));
    EXPECT_NE(text, "taken") << broken;
    EXPECT_EQ(text.find("secret"), std::string::npos) << text;
  }
  const std::string path = write("config", config("token: secret"));
  EXPECT_NE(refusal("k8s://?context=none&kubeconfig=" + path).find("'none'"), std::string::npos);
  EXPECT_NE(refusal("k8s://?context=other&kubeconfig=" + path).find("'nobody'"), std::string::npos);
  EXPECT_NE(refusal("k8s://?kubeconfig=" + path + "-missing").find("cannot read"),
            std::string::npos);
}

TEST_F(ClusterTest, a_url_with_anything_else_is_refused) {
  for (const std::string url :
       {"k8s:", "k8s:/x", "k8s://Upper", "k8s://a/b", "k8s://-a", "k8s://user:pw@host",
        "k8s://a?contest=x", "k8s://a?context", "k8s://a?context=%zz", "k8s://a?context=%00"}) {
    const auto cluster = find(url);
    ASSERT_FALSE(cluster) << url;
    EXPECT_EQ(cluster.error().code, Code::bad_url) << url;
    EXPECT_EQ(cluster.error().message.find("pw"), std::string::npos);
  }
}

TEST_F(ClusterTest, inside_a_cluster_it_is_the_pods_service_account) {
  environment["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  environment["KUBERNETES_SERVICE_PORT"] = "6443";
  EXPECT_NE(refusal("k8s://").find("automountServiceAccountToken"), std::string::npos);
  write("token", "t");
  write("namespace", "mine\n");
  const auto cluster = find("k8s://");
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->address, "https://[fd00::1]:6443");
  EXPECT_EQ(cluster->space, "mine");
  EXPECT_EQ(cluster->token_file, (dir / "token").string());
  EXPECT_EQ(cluster->tls.ca_file, (dir / "ca.crt").string());
  // A URL that names a context means a kubeconfig.
  EXPECT_NE(refusal("k8s://?context=here"), "taken");
}

TEST_F(ClusterTest, outside_it_is_the_usual_kubeconfig_or_the_variable) {
  EXPECT_NE(refusal("k8s://").find(".kube/config"), std::string::npos);
  write(".kube/config", config("token: usual"));
  EXPECT_EQ(find("k8s://")->token, "usual");
  environment["KUBECONFIG"] = write("named", config("token: named"));
  EXPECT_EQ(find("k8s://")->token, "named");
  environment["KUBECONFIG"] += ":/other";
  EXPECT_NE(refusal("k8s://").find("several"), std::string::npos);
}

}  // namespace
}  // namespace baton::store::kubernetes
