#include <sys/resource.h>

#include <algorithm>
#include <thread>

#include "apps/common/ending_signals.h"
#include "apps/common/start.h"
#include "apps/gateway/bearer.h"
#include "apps/gateway/health.h"
#include "apps/gateway/log.h"
#include "apps/gateway/options.h"
#include "apps/gateway/orchestrator.h"
#include "apps/gateway/signal_gateway.h"
#include "baton/lock_metrics.h"

namespace baton::gateway {
namespace {

http::ServerOptions server_options(const Options& options, observe::Metrics& metrics,
                                   const std::optional<std::string>& token) {
  const bool signals = options.service == Options::Service::signals;
  http::ServerOptions server{
      .address = options.address,
      .port = options.port,
      .max_connections = options.max_connections,
      .max_pending = options.max_pending,
      .max_body_bytes = options.max_body,
      .answer_timeout = options.wait + Millis(20'000),  // and then the stores have theirs
      .on_served = counting(metrics, signals ? "gateway" : "ro")};
  if (token) server.refuse = requiring(*token);
  return server;
}

// As far as the hard limit allows: the soft one is often 1024.
void raise_descriptor_limit(const http::ServerOptions& server) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = server.max_connections + server.reserved_descriptors + 64;
  if (limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

void tell_where(const http::Server& server, const Options& options, bool has_token) {
  log().info("listening on " + server.url());
  if (server.max_connections() < options.max_connections) {
    log().warn("the limit of open files allows " + std::to_string(server.max_connections()) +
               " connections of --max-connections " + std::to_string(options.max_connections));
  }
  if (!has_token && !http::is_loopback_address(options.address)) {
    log().warn("everybody who reaches " + server.url() +
               " may use it: set --token-file, or listen on 127.0.0.1");
  }
}

Result<int> run(const Options& options) {
  apps::EndingSignals signals;
  const auto token = read_bearer_token(options.token_file);
  if (!token) return token.error();
  const auto metrics = std::make_shared<observe::Metrics>();
  auto locks = open(options.store, {.owner = options.owner,
                                    .observer = std::make_shared<observe::LockMetrics>(metrics)});
  if (!locks) return locks.error();
  if (options.ttl < locks->capabilities().min_ttl) {
    return Error{.code = Code::bad_request, .message = "--ttl is too short for this store"};
  }
  open_log({.service = options.service == Options::Service::signals ? "gateway" : "orchestrator",
            .node = locks->owner(),
            .format = options.log_format,
            .level = options.log_level});
  auto opened = open_objects(options.objects);
  if (!opened) return opened.error();
  const std::shared_ptr<ObjectStore> objects = std::move(*opened);
  const auto workers = std::make_shared<http::WorkerPool>(options.workers);

  http::Router router;
  add_common_routes(router, *locks, objects, *metrics);
  std::shared_ptr<SignalGateway> gateway;
  std::unique_ptr<Orchestrator> orchestrator;
  if (options.service == Options::Service::signals) {
    gateway =
        std::make_shared<SignalGateway>(*locks, objects, workers, metrics,
                                        GatewayOptions{.ttl = options.ttl, .wait = options.wait});
    gateway->add_routes(router);
  } else {
    orchestrator = std::make_unique<Orchestrator>(
        *locks, objects, *metrics,
        OrchestratorOptions{.ttl = options.ttl, .requeue = options.requeue, .keep = options.keep});
    orchestrator->add_routes(router);
  }
  auto how = server_options(options, *metrics, *token);
  raise_descriptor_limit(how);
  auto server = http::Server::start(std::move(router), std::move(how), workers);
  if (!server) return server.error();
  std::jthread loop;
  if (orchestrator) {
    loop = std::jthread([&](const std::stop_token& stop) { orchestrator->run(stop); });
  }
  tell_where(**server, options, token->has_value());

  signals.wait();
  log().info("stopping");
  (*server)->stop(options.grace);
  if (gateway) gateway->stop();
  workers->stop();
  return apps::kOk;
}

}  // namespace
}  // namespace baton::gateway

int main(int argc, char** argv) {
  using namespace baton::gateway;
  return baton::apps::start("baton-gateway", argc, argv, parse_command_line, run);
}
