// Rights and credentials.

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "baton/kubernetes_store.h"
#include "http_client/base64.h"
#include "integration/kubernetes/kubernetes_support.h"
#include "integration/postgres/examine_support.h"
#include "json/json.h"
#include "support/fault_proxy.h"

namespace baton::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json as_json(const YAML::Node& node) {
  if (node.IsMap()) {
    json object = json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = as_json(entry.second);
    return object;
  }
  if (node.IsSequence()) {
    json list = json::array();
    for (const auto& entry : node) list.push_back(as_json(entry));
    return list;
  }
  return node.Scalar();
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class KubernetesAccess : public KubernetesTest {
 protected:
  TempDir dir{"access"};

  bool may(const std::string& verb, const std::string& user) {
    return server->may(user, space, {.verb = verb});
  }
  void allow(const std::string& user, const std::vector<std::string>& verbs) {
    server->allow(user, space, verbs);
    for (const std::string verb : {"get", "create", "update", "delete", "list", "watch"}) {
      const bool wanted = std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
      ASSERT_TRUE(poll_until([&] { return may(verb, user) == wanted; })) << verb;
    }
  }
  std::string service_account(const std::string& token) {
    fs::create_directories(dir / "account");
    fs::copy_file(server->ca_file(), dir / "account/ca.crt", fs::copy_options::overwrite_existing);
    std::ofstream(dir / "account/namespace") << space;
    write_token(token);
    return (dir / "account").string();
  }
  // As the kubelet does: another file takes its place.
  void write_token(const std::string& token) {
    std::ofstream(dir / "account/token.new") << token << "\n";
    fs::rename(dir / "account/token.new", dir / "account/token");
  }
  // A URL with the admin's kubeconfig, in which what it says of the cluster is changed.
  std::string with_cluster(const std::function<void(json& cluster)>& change) {
    json config = json::parse(read_file(server->kubeconfig("admin", space)));
    change(config["clusters"][0]["cluster"]);
    std::ofstream(dir / "config") << config;
    return "k8s://" + space + "?kubeconfig=" + (dir / "config").string();
  }
  store::KubernetesOptions in_cluster(const std::string& account) {
    const std::string address = server->address();
    return {.url = "k8s://",
            .surroundings = {.variable = [address](const char* name) -> std::string {
                               if (name == std::string("KUBERNETES_SERVICE_HOST")) {
                                 return "127.0.0.1";
                               }
                               if (name == std::string("KUBERNETES_SERVICE_PORT")) {
                                 return address.substr(address.rfind(':') + 1);
                               }
                               return "";
                             },
                             .service_account = account}};
  }
};

// Every pod that names no account runs as `default`: what is bound to it, all of them may do.
TEST_F(KubernetesAccess, the_rights_in_deploy_go_to_accounts_of_their_own) {
  std::set<std::string> accounts;
  std::set<std::string> bound;
  for (const YAML::Node& node : YAML::LoadAll(read_file(BATON_RBAC_YAML))) {
    const json object = as_json(node);
    if (object["kind"] == "ServiceAccount") accounts.insert(object["metadata"]["name"]);
    if (object["kind"] != "RoleBinding") continue;
    for (const json& subject : object["subjects"]) {
      EXPECT_EQ(subject["kind"], "ServiceAccount");
      bound.insert(subject["name"]);
    }
  }
  EXPECT_FALSE(bound.contains("default"));
  EXPECT_EQ(bound, accounts);
}

TEST_F(KubernetesAccess, the_rights_in_deploy_are_enough) {
  for (const YAML::Node& node : YAML::LoadAll(read_file(BATON_RBAC_YAML))) {
    json object = as_json(node);
    object["metadata"]["namespace"] = space;
    if (object["kind"] == "ServiceAccount") {
      server->create("/api/v1/namespaces/" + space + "/serviceaccounts", object.dump());
      continue;
    }
    if (object["kind"] == "RoleBinding") {
      object["subjects"] = {
          {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", "leaser"}}};
    }
    server->create("/apis/rbac.authorization.k8s.io/v1/namespaces/" + space +
                       (object["kind"] == "Role" ? "/roles" : "/rolebindings"),
                   object.dump());
  }
  ASSERT_TRUE(poll_until([&] { return may("watch", "leaser"); }));
  auto store = open({}, "leaser");
  EXPECT_EQ(outcome(*store, acquire(1, kName)), Outcome::granted);
  EXPECT_EQ(outcome(*store, acquire(2, kName, Mode::X, kQueueTtl)), Outcome::queued);
  EXPECT_EQ(outcome(*store, same_targets(Verb::renew, acquire(1, kName))), Outcome::granted);
  EXPECT_EQ(store->find({}, soon()).value().items.size(), 1U);
  EXPECT_EQ(outcome(*store, same_targets(Verb::release, acquire(1, kName))), Outcome::done);
  EXPECT_EQ(outcome(*store, same_targets(Verb::claim, acquire(2, kName))), Outcome::granted);
  EXPECT_EQ(outcome(*store, same_targets(Verb::release, acquire(2, kName))), Outcome::done);
}

TEST_F(KubernetesAccess, without_a_right_the_error_names_the_verb) {
  const auto names = [&](const Error& error, const std::string& verb) {
    EXPECT_EQ(error.code, Code::unauthorized) << error.message;
    EXPECT_FALSE(error.in_doubt);
    EXPECT_NE(error.message.find("'" + verb + "'"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find("rbac.yaml"), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(space), std::string::npos) << error.message;
  };
  const auto opened =
      store::open_kubernetes_store_with({.url = server->store_url("cutter", space)}, soon());
  ASSERT_FALSE(opened);
  names(opened.error(), "get");
  allow("cutter", {"get"});
  auto store = open({}, "cutter");
  names(failure(*store, acquire(1, kName)), "create");
  allow("cutter", {"get", "create"});
  EXPECT_EQ(outcome(*store, acquire(1, kName)), Outcome::granted);
  names(failure(*store, same_targets(Verb::renew, acquire(1, kName))), "update");
  names(failure(*store, same_targets(Verb::release, acquire(1, kName))), "delete");
  const auto page = store->find({}, soon());
  ASSERT_FALSE(page);
  names(page.error(), "list");
  // Without a watch it works all the same; waiters only hear of it later.
  allow("cutter", {"get", "create", "update", "delete", "list"});
  EXPECT_EQ(outcome(*store, same_targets(Verb::release, acquire(1, kName))), Outcome::done);
}

TEST_F(KubernetesAccess, a_namespace_that_is_not_there_is_named) {
  auto store = open({.url = server->store_url("admin", "nowhere")});
  const Error error = failure(*store, acquire(1, kName));
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_NE(error.message.find("nowhere"), std::string::npos) << error.message;
}

TEST_F(KubernetesAccess, a_wrong_token_is_unauthorized_and_not_told) {
  const auto opened =
      store::open_kubernetes_store_with(in_cluster(service_account("made-up-token")), soon());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::unauthorized);
  EXPECT_EQ(opened.error().message.find("made-up"), std::string::npos) << opened.error().message;
}

TEST_F(KubernetesAccess, a_service_accounts_token_is_read_again_when_it_rotates) {
  server->allow("leaser", space, {"get", "create", "update", "delete"});
  ASSERT_TRUE(poll_until([&] { return may("update", "leaser"); }));
  auto store = open(in_cluster(service_account(KubeServer::token("leaser"))));
  ASSERT_EQ(outcome(*store, acquire(1, kName)), Outcome::granted);
  server->replace_token("leaser");
  server->stop();
  server->start();
  Error refused;
  // The first one may go to the connection from before the restart, and is not sent twice.
  ASSERT_TRUE(poll_until([&] {
    refused = failure(*store, same_targets(Verb::renew, acquire(1, kName)));
    return refused.code != Code::unavailable;
  }));
  EXPECT_EQ(refused.code, Code::unauthorized) << refused.message;
  write_token(KubeServer::token("leaser") + "-again");
  EXPECT_EQ(outcome(*store, same_targets(Verb::renew, acquire(1, kName))), Outcome::granted);
}

TEST_F(KubernetesAccess, the_doctor_names_each_missing_right) {
  const Codes all{"rbac-create", "rbac-delete", "rbac-get",
                  "rbac-list",   "rbac-update", "rbac-watch"};
  for (const std::string& missing : all) {
    std::vector<std::string> verbs;
    for (const std::string& code : all) {
      if (code != missing) verbs.push_back(code.substr(5));
    }
    allow("cutter", verbs);
    const auto admin = open_kubernetes_admin(server->store_url("cutter", space), soon()).value();
    EXPECT_EQ(codes_found(*admin, 1h), Codes{missing});
    const bool works = missing == "rbac-list" || missing == "rbac-watch";
    EXPECT_EQ(severity_of(*admin, missing, 1h), works ? Severity::warning : Severity::danger);
  }
  const auto nobody = open_kubernetes_admin(server->store_url("nobody", space), soon()).value();
  EXPECT_EQ(codes_found(*nobody, 1h), all);
}

TEST_F(KubernetesAccess, the_doctor_finds_a_namespace_without_leases_and_an_unchecked_server) {
  const auto codes = [](const std::string& url) {
    return codes_found(*open_kubernetes_admin(url, soon()).value(), 1h);
  };
  EXPECT_EQ(codes(server->store_url("admin", space)), Codes{});
  EXPECT_EQ(codes(server->store_url("admin", "nowhere")), Codes{"not-writable"});
  EXPECT_EQ(codes(with_cluster([](json& cluster) {
              cluster.erase("certificate-authority");
              cluster["insecure-skip-tls-verify"] = true;
            })),
            Codes{"tls-unverified"});
}

TEST_F(KubernetesAccess, the_doctor_finds_a_way_that_is_slow_for_the_ttl) {
  const std::string address = server->address();
  FaultProxy proxy(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto admin = open_kubernetes_admin(with_cluster([&](json& cluster) {
                                             cluster["server"] = "https://127.0.0.1:" +
                                                                 std::to_string(proxy.port());
                                           }),
                                           soon())
                         .value();
  EXPECT_EQ(codes_found(*admin, 1h), Codes{});
  proxy.delay(50ms);  // each way
  expect_by_ttl(*admin, "slow");
}

TEST_F(KubernetesAccess, a_client_certificate_is_enough) {
  const auto made = server->certificate("nobody");
  server->allow("nobody", space, {"get", "create", "update", "delete"});
  ASSERT_TRUE(poll_until([&] { return may("create", "nobody"); }));
  const auto config = [&](const json& user) {
    const fs::path path = dir / "config";
    std::ofstream(path) << json{
        {"current-context", "c"},
        {"contexts", {{{"name", "c"}, {"context", {{"cluster", "c"}, {"user", "u"}}}}}},
        {"clusters",
         {{{"name", "c"},
           {"cluster",
            {{"server", server->address()},
             {"certificate-authority-data",
              http_client::to_base64(read_file(server->ca_file()))}}}}}},
        {"users", {{{"name", "u"}, {"user", user}}}}};
    return "k8s://" + space + "?kubeconfig=" + path.string();
  };
  auto by_file =
      open({.url = config({{"client-certificate", made.certificate}, {"client-key", made.key}})});
  EXPECT_EQ(outcome(*by_file, acquire(1, kName)), Outcome::granted);
  auto by_data =
      open({.url = config(
                {{"client-certificate-data", http_client::to_base64(read_file(made.certificate))},
                 {"client-key-data", http_client::to_base64(read_file(made.key))}})});
  EXPECT_EQ(outcome(*by_data, acquire(2, kName)), Outcome::busy);
}

TEST_F(KubernetesAccess, a_server_with_another_certificate_gets_no_token) {
  std::ofstream(dir / "config") << json{
      {"current-context", "c"},
      {"contexts", {{{"name", "c"}, {"context", {{"cluster", "c"}, {"user", "u"}}}}}},
      {"clusters", {{{"name", "c"}, {"cluster", {{"server", server->address()}}}}}},
      {"users", {{{"name", "u"}, {"user", {{"token", KubeServer::token("admin")}}}}}}};
  const auto opened = store::open_kubernetes_store_with(
      {.url = "k8s://x?kubeconfig=" + (dir / "config").string()}, soon());
  ASSERT_FALSE(opened);
  EXPECT_FALSE(opened.error().retryable) << opened.error().message;
  EXPECT_NE(opened.error().message.find("certificate"), std::string::npos)
      << opened.error().message;
}

}  // namespace
}  // namespace baton::test
