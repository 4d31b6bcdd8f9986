// The services with locks and objects on Kubernetes: a real API server with the types and the
// rights of deploy/kubernetes.

#include <iterator>

#include "integration/gateway/gateway_support.h"
#include "json/json.h"
#include "support/fault_proxy.h"
#include "support/kube_server.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using gateway::Guard;
using gateway::Phase;
using gateway::RemediationRequest;
using gateway::WorkflowExecution;
using nlohmann::json;
using Words = std::vector<std::string>;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

gateway::Time now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

class GatewayKubernetes : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    server = std::make_unique<KubeServer>();
    before_types = gateway::open_objects(server->store_url("admin", "default")).error();
    server->create_types(BATON_CRDS_YAML);
  }
  static void TearDownTestSuite() { server.reset(); }

  [[nodiscard]] std::string url(const std::string& user = "admin") const {
    return server->store_url(user, space);
  }
  static std::unique_ptr<gateway::ObjectStore> objects(const std::string& url) {
    return gateway::open_objects(url).value();
  }

  std::unique_ptr<Service> start(const std::string& service, const std::string& owner,
                                 const Words& extra = {}, const std::string& user = "admin") const {
    Words words{BATON_GATEWAY, service, "--listen", "127.0.0.1:0", "--owner", owner};
    words.insert(words.end(), {"--store", url(user)});
    words.insert(words.end(), {"--objects", objects_url.empty() ? url(user) : objects_url});
    words.insert(words.end(), extra.begin(), extra.end());
    return std::make_unique<Service>(std::move(words));
  }
  void start_gateways(const Words& extra) {
    for (const char* owner : {"gateway-0", "gateway-1", "gateway-2"}) {
      gateways.push_back(start("signals", owner, extra));
    }
  }

  [[nodiscard]] std::string path(const std::string& plural) const {
    return "/apis/remediation.baton.dev/v1alpha1/namespaces/" + space + "/" + plural;
  }
  [[nodiscard]] json items(const std::string& plural) const {
    return json::parse(server->call("GET", path(plural)).body)["items"];
  }

  // Half of the requests come in one second, half in the next. All have seen that there is no
  // request yet, and all wait for the lock, before the first may go on.
  void one_of_a_hundred(std::size_t over_gateways) {
    start_gateways({"--wait", "60s"});
    LockClient ours = open(url(), {.owner = "test"}).value();
    const LockName name = gateway::signal_lock(fingerprint_text("HighMemory"));
    auto held = ours.acquire(name);
    ASSERT_TRUE(held) << held.error().message;
    Clients clients;
    const auto send_half = [&] {
      for (std::size_t i = 0; i < kRequests / 2; ++i) {
        const int port = gateways[i % over_gateways]->port();
        clients.send(
            signal_text("HighMemory"), [port](std::size_t) { return port; }, false);
      }
    };
    const auto waiting = [&] { return ours.get(name).value().waiting; };
    send_half();
    ASSERT_TRUE(poll_until([&] { return waiting() == kRequests / 2; }, patience, 20ms))
        << waiting();
    wait_for_the_next_second();
    send_half();
    ASSERT_TRUE(poll_until([&] { return waiting() == kRequests; }, patience, 20ms)) << waiting();
    ASSERT_TRUE(held->release());
    clients.wait();

    EXPECT_EQ(clients.with(201), 1U);
    EXPECT_EQ(clients.with(202), kRequests - 1);
    EXPECT_EQ(clients.bodies_named().size(), 1U) << "all were told the same name";
    const json made = items("remediationrequests");
    ASSERT_EQ(made.size(), 1U);
    EXPECT_EQ(made[0]["status"]["duplicates"], kRequests - 1) << made;
    EXPECT_EQ(made[0]["spec"]["signal"]["alertName"], "HighMemory");
    EXPECT_GT(made[0]["spec"]["token"], 0);
  }

  void expect_one_request(const Clients& clients) const {
    EXPECT_EQ(clients.with(201) + clients.with(202), kRequests);
    EXPECT_LE(clients.with(201), 1U) << "its maker may have died before it could say so";
    const json made = items("remediationrequests");
    EXPECT_EQ(made.size(), 1U) << made;
  }

  [[nodiscard]] bool may(const std::string& user, const std::string& verb,
                         const std::string& resource, const std::string& part = {}) const {
    return server->may(user, space,
                       {.verb = verb,
                        .group = "remediation.baton.dev",
                        .resource = resource,
                        .subresource = part});
  }

  // The roles of deploy/kubernetes for that user in the namespace of this test.
  void give_rights(const std::string& user) const {
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + space;
    std::string text = read_file(BATON_RBAC_YAML);
    const auto replace = [&](const std::string& what, const std::string& with) {
      for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
        text.replace(at, what.size(), with);
        at += with.size();
      }
    };
    for (const std::string account : {"baton", "baton-gateway"}) {
      replace("kind: ServiceAccount\n    name: " + account + "\n    namespace: default",
              "kind: User\n    name: " + user + "\n    apiGroup: rbac.authorization.k8s.io");
    }
    replace("  namespace: default", "  namespace: " + space);
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = std::min(text.find("\n---\n", begin), text.size());
      const std::string part = text.substr(begin, end - begin);
      begin = end + 5;
      if (part.find("kind: ServiceAccount") != std::string::npos) continue;
      const bool binding = part.find("kind: RoleBinding") != std::string::npos;
      server->create_yaml(rbac + (binding ? "/rolebindings" : "/roles"), part);
    }
    ASSERT_TRUE(poll_until([&] { return may(user, "patch", "workflowexecutions", "status"); }));
  }

  // Only these verbs on the objects and their status.
  void allow(const std::string& user, const Words& verbs, const Words& on_status) const {
    const std::string rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + space;
    const std::string group = "remediation.baton.dev";
    server->call("DELETE", rbac + "/roles/some");
    server->call("DELETE", rbac + "/rolebindings/some");
    json rules = {{{"apiGroups", {group}},
                   {"resources", {"remediationrequests", "workflowexecutions"}},
                   {"verbs", verbs}}};
    if (!on_status.empty()) {
      rules.push_back({{"apiGroups", {group}},
                       {"resources", {"remediationrequests/status"}},
                       {"verbs", on_status}});
    }
    server->create(rbac + "/roles",
                   json{{"metadata", {{"name", "some"}}}, {"rules", rules}}.dump());
    server->create(
        rbac + "/rolebindings",
        json{{"metadata", {{"name", "some"}}},
             {"roleRef",
              {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Role"}, {"name", "some"}}},
             {"subjects",
              {{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", user}}}}}
            .dump());
    for (const std::string& verb : verbs) {
      ASSERT_TRUE(poll_until([&] { return may(user, verb, "workflowexecutions"); })) << verb;
    }
    for (const std::string& verb : on_status) {
      ASSERT_TRUE(poll_until([&] { return may(user, verb, "remediationrequests", "status"); }));
    }
  }

  static RemediationRequest request(const std::string& name) {
    return {.name = name,
            .fingerprint = "f",
            .target = {.kind = "Node", .name = "worker-1"},
            .signal = R"({"alertName":"A","resource":{"kind":"Node","name":"worker-1"}})",
            .created = now(),
            .last_seen = now()};
  }
  static Guard guard(Token token) { return {.tokens = {{"k", Mode::X, token}}, .owner = "test"}; }

  static inline std::unique_ptr<KubeServer> server;
  static inline Error before_types;
  std::string space = server->create_namespace();
  std::string objects_url;  // if not that of the locks
  TempDir dir{"gateway-kube"};
  Services gateways;
};

TEST_F(GatewayKubernetes, without_the_types_it_says_what_to_apply) {
  EXPECT_EQ(before_types.code, Code::bad_store) << before_types.message;
  EXPECT_NE(before_types.message.find("crds.yaml"), std::string::npos) << before_types.message;
}

TEST_F(GatewayKubernetes, an_object_without_a_target_is_not_let_in) {
  const auto post = [&](const std::string& plural, const std::string& kind, json spec,
                        const std::string& target) {
    spec["target"] = target;
    const json object{{"apiVersion", "remediation.baton.dev/v1alpha1"},
                      {"kind", kind},
                      {"metadata", {{"generateName", "by-hand-"}}},
                      {"spec", spec}};
    return server->call("POST", path(plural), object.dump()).status;
  };
  const json signal = {{"alertName", "A"}, {"resource", {{"kind", "Node"}, {"name", "a"}}}};
  const json request = {{"fingerprint", "f"}, {"signal", signal}};
  const json execution = {{"remediationRequest", "r"}};
  for (const char* target : {"abc", "Node/", "/worker-1", "a/b/c/d", "a b/c"}) {
    EXPECT_EQ(post("remediationrequests", "RemediationRequest", request, target), 422) << target;
    EXPECT_EQ(post("workflowexecutions", "WorkflowExecution", execution, target), 422) << target;
  }
  for (const char* target : {"Node/worker-1", "shop/Deployment/cart"}) {
    EXPECT_EQ(post("remediationrequests", "RemediationRequest", request, target), 201) << target;
    EXPECT_EQ(post("workflowexecutions", "WorkflowExecution", execution, target), 201) << target;
  }
}

TEST_F(GatewayKubernetes, of_a_hundred_requests_to_one_gateway_one_makes_the_object) {
  one_of_a_hundred(1);
}

TEST_F(GatewayKubernetes, of_a_hundred_requests_to_three_gateways_one_makes_the_object) {
  one_of_a_hundred(3);
}

// The objects are out of reach for the one that holds the lock when it is killed: it has been in
// the middle of looking, or of creating, since the second before. Half of the requests come only
// then.
TEST_F(GatewayKubernetes, a_gateway_killed_while_it_creates_loses_no_request_and_doubles_none) {
  const std::string address = server->address();
  FaultProxy proxy(std::atoi(address.c_str() + address.rfind(':') + 1));
  json config = json::parse(read_file(server->kubeconfig("admin", space)));
  config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:" + std::to_string(proxy.port());
  std::ofstream(dir / "config") << config;
  objects_url = "k8s://" + space + "?kubeconfig=" + (dir / "config").string();
  start_gateways({"--ttl", "2s", "--wait", "60s"});
  LockClient ours = open(url(), {.owner = "test"}).value();
  const LockName name = gateway::signal_lock(fingerprint_text("Killed"));
  auto held = ours.acquire(name);
  ASSERT_TRUE(held) << held.error().message;
  Clients clients;
  clients.send_stubbornly(kRequests / 2, signal_text("Killed"), gateways);
  ASSERT_TRUE(
      poll_until([&] { return ours.get(name).value().waiting == kRequests / 2; }, patience, 20ms));
  proxy.cut();
  ASSERT_TRUE(held->release());
  std::string holder;
  const auto held_by_another = [&] {
    return poll_until([&] {
      const auto lock = ours.get(name).value();
      if (lock.holders.empty()) return false;
      holder = lock.holders.front().owner;
      return holder != "test";
    });
  };
  ASSERT_TRUE(held_by_another());
  wait_for_the_next_second();
  ASSERT_TRUE(held_by_another());
  kill_gateway(gateways, holder);
  clients.send_stubbornly(kRequests / 2, signal_text("Killed"), gateways);
  proxy.heal();
  clients.wait();
  expect_one_request(clients);
}

// The one that has just created is killed, perhaps before it could answer or let go of the lock.
// Half of the requests come in the next second.
TEST_F(GatewayKubernetes, a_gateway_killed_after_it_created_loses_no_request_and_doubles_none) {
  start_gateways({"--ttl", "2s", "--wait", "60s"});
  Clients clients;
  clients.send_stubbornly(kRequests / 2, signal_text("Killed"), gateways);
  std::string maker;
  ASSERT_TRUE(poll_until([&] {
    const json made = items("remediationrequests");
    if (made.empty()) return false;
    maker = made[0]["spec"]["createdBy"];
    return true;
  }));
  kill_gateway(gateways, maker);
  wait_for_the_next_second();
  clients.send_stubbornly(kRequests / 2, signal_text("Killed"), gateways);
  clients.wait();
  expect_one_request(clients);
}

// With no more than the rights of deploy/kubernetes.
TEST_F(GatewayKubernetes, orchestrators_run_one_execution_for_a_target_at_a_time) {
  give_rights("leaser");
  const auto signals = start("signals", "gateway", {}, "leaser");
  Services orchestrators;
  for (const char* owner : {"orchestrator-0", "orchestrator-1"}) {
    orchestrators.push_back(start("orchestrator", owner, {"--ttl", "2s"}, "leaser"));
  }
  constexpr std::size_t kAll = 6;
  for (std::size_t i = 0; i < kAll; ++i) {
    const auto answer =
        http(signals->port(), {"POST", "/signals", signal_text("Alert-" + std::to_string(i))});
    ASSERT_EQ(answer.value().status, 201) << answer->body;
  }
  std::set<std::string> finished;
  const auto step = [&] {
    const int port = orchestrators[finished.size() % 2]->port();
    const auto listed = http(port, {"GET", "/executions?phase=Running"});
    const json running = json::parse(listed.value().body)["workflowExecutions"];
    EXPECT_LE(running.size(), 1U) << running;
    for (const json& execution : running) {
      const std::string name = execution["name"];
      const auto ended =
          http(port, {"POST", "/executions/" + name + "/finish", R"({"phase":"Completed"})"});
      EXPECT_EQ(ended.value().status, 200) << ended->body;
      EXPECT_TRUE(finished.insert(name).second) << name << " ran twice";
    }
    const json requests = items("remediationrequests");
    return std::all_of(requests.begin(), requests.end(), [](const json& request) {
      return request.value("/status/phase"_json_pointer, "") == "Completed";
    });
  };
  ASSERT_TRUE(poll_until(step, 2 * patience, 20ms)) << items("remediationrequests");
  EXPECT_EQ(finished.size(), kAll);
  EXPECT_EQ(items("workflowexecutions").size(), kAll);
}

TEST_F(GatewayKubernetes, who_writes_after_its_lock_was_lost_is_told_and_leaves_nothing) {
  const auto store = objects(url());
  ASSERT_TRUE(store->create(request("first"), guard(7)).value());
  const auto late = store->create(request("late"), guard(6));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::fenced) << late.error().message;
  const json made = items("remediationrequests");
  ASSERT_EQ(made.size(), 1U);
  EXPECT_EQ(made[0]["metadata"]["name"], "first");
  EXPECT_FALSE(store->create(request("first"), guard(8)).value()) << "the name is taken";

  const WorkflowExecution one{.name = "we-first",
                              .request = "first",
                              .target = {.kind = "Node", .name = "worker-1"},
                              .created = now()};
  WorkflowExecution two = one;
  two.name = "we-second";
  ASSERT_TRUE(store->create(one, guard(7)).value());
  EXPECT_EQ(store->create(two, guard(6)).error().code, Code::fenced);
  EXPECT_EQ(items("workflowexecutions").size(), 1U);
}

TEST_F(GatewayKubernetes, what_has_ended_makes_room_and_is_forgotten_later) {
  const auto store = objects(url());
  ASSERT_TRUE(store->create(request("one"), guard(1)).value());
  const WorkflowExecution execution{.name = "we-one",
                                    .request = "one",
                                    .target = {.kind = "Node", .name = "worker-1"},
                                    .created = now()};
  ASSERT_TRUE(store->create(execution, guard(1)).value());
  ASSERT_TRUE(store->set_running("one", "we-one", guard(1)));
  EXPECT_EQ(store->count_duplicate("one", now()).value(), 1);
  EXPECT_EQ(store->active_request("f").value().value().phase, Phase::running);
  EXPECT_TRUE(store->finish_execution("we-one", Phase::failed, now()).value());
  EXPECT_FALSE(store->finish_execution("we-one", Phase::completed, now()).value());
  ASSERT_TRUE(poll_until([&] { return store->conclude_requests(now()).value() == 1; }));
  EXPECT_EQ(store->request("one").value().value().phase, Phase::failed);
  EXPECT_FALSE(store->active_request("f").value());
  EXPECT_FALSE(store->count_duplicate("one", now()).value()) << "it is not active any more";
  EXPECT_TRUE(store->create(request("two"), guard(2)).value());
  EXPECT_FALSE(store->request("../" + space).value()) << "no name reaches another path";
  // A list that costs little is a moment old.
  ASSERT_TRUE(poll_until([&] {
    EXPECT_TRUE(store->forget(now() + 1h));
    return items("workflowexecutions").empty();
  }));
  const json left = items("remediationrequests");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0]["metadata"]["name"], "two") << "it has not ended";
}

TEST_F(GatewayKubernetes, without_a_right_the_error_names_the_verb) {
  const auto names = [&](const Error& error, const std::string& verb, const std::string& what) {
    EXPECT_EQ(error.code, Code::unauthorized) << error.message;
    EXPECT_NE(error.message.find("'" + verb + "' " + what + " in namespace '" + space + "'"),
              std::string::npos)
        << error.message;
    EXPECT_NE(error.message.find("rbac.yaml"), std::string::npos) << error.message;
  };
  const std::string requests = "remediationrequests.remediation.baton.dev";
  names(gateway::open_objects(url("cutter")).error(), "list", requests);
  allow("cutter", {"list"}, {});
  const auto store = objects(url("cutter"));
  names(store->request("one").error(), "get", requests);
  names(store->create(request("one"), guard(1)).error(), "create", requests);
  allow("cutter", {"list", "get", "create"}, {});
  ASSERT_TRUE(store->create(request("one"), guard(1)).value());
  names(store->count_duplicate("one", now()).error(), "patch", requests + "/status");
  names(store->create(request("two"), guard(1)).error(), "delete", requests);
}

}  // namespace
}  // namespace baton::test
