#include "stores/deployments.h"

#include "baton/store_admin.h"
#include "support/etcd_server.h"
#include "support/postgres_server.h"
#include "support/redis_server.h"
#include "support/temp_dir.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

std::string with_port(std::string url, int old_port, int port) {
  const std::string old_text = ":" + std::to_string(old_port);
  return url.replace(url.rfind(old_text), old_text.size(), ":" + std::to_string(port));
}

}  // namespace

Deployment sqlite_deployment() {
  const auto dir = std::make_shared<test::TempDir>("failover");
  return {.server = dir,
          .url = [path = dir->path().string()](int) { return "sqlite:" + path + "/locks.db"; }};
}

Deployment postgres_deployment(const std::string& scheme) {
  const auto server = std::make_shared<test::PostgresServer>();
  const std::string plain = server->url();
  const std::string url = scheme + plain.substr(plain.find(':'));
  open_admin(url, BootClock::now() + 10s).value()->migrate(BootClock::now() + 30s).value();
  return {.server = server,
          .port = server->port(),
          .url = [=](int port) { return with_port(url, server->port(), port); },
          .restart = [=] { server->restart(test::PostgresServer::StopMode::immediate); }};
}

Deployment redis_deployment() {
  const auto server = std::make_shared<test::RedisServer>(
      test::RedisOptions{.settings = {{"appendonly", "yes"}, {"appendfsync", "always"}}});
  return {.server = server,
          .port = server->port(),
          .url = [=](int port) { return with_port(server->url(), server->port(), port); },
          .restart =
              [=] {
                server->crash();
                server->start();
              }};
}

Deployment etcd_deployment() {
  const auto server = std::make_shared<test::EtcdServer>(test::EtcdOptions{.on_disk = true});
  const std::string endpoint = server->endpoint();
  const int own = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
  return {.server = server,
          .port = own,
          .url = [=](int port) { return with_port(server->url(), own, port); },
          .restart = [=] { server->restart(); }};
}

}  // namespace baton::bench
