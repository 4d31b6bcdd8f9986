#include <fstream>

#include <nlohmann/json.hpp>

#include "stores/deployments.h"
#include "support/kube_server.h"

namespace baton::bench {
namespace {

struct Cluster {
  test::KubeServer server;
  std::string space = server.create_namespace();
  test::TempDir configs{"failover"};

  // A kubeconfig of its own for each port.
  std::string url(int port) {
    std::ifstream file(server.kubeconfig("admin", space));
    auto config = nlohmann::json::parse(file);
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:" + std::to_string(port);
    const auto path = configs / ("config-" + std::to_string(port));
    std::ofstream(path) << config;
    return "k8s://" + space + "?kubeconfig=" + path.string();
  }
};

}  // namespace

Deployment kubernetes_deployment() {
  const auto cluster = std::make_shared<Cluster>();
  const std::string address = cluster->server.address();
  return {.server = cluster,
          .port = std::stoi(address.substr(address.rfind(':') + 1)),
          .url = [=](int port) { return cluster->url(port); },
          .restart =
              [=] {
                cluster->server.crash();
                cluster->server.start();
              }};
}

}  // namespace baton::bench
