#include <thread>

#include "apps/common/ending_signals.h"
#include "apps/common/start.h"
#include "apps/gateway/health.h"
#include "apps/gateway/log.h"
#include "apps/gateway/options.h"
#include "apps/gateway/orchestrator.h"
#include "apps/gateway/signal_gateway.h"
#include "observe/lock_metrics.h"

namespace baton::gateway {
namespace {

http::ServerOptions server_options(const Options& options, observe::Metrics& metrics) {
  const bool signals = options.service == Options::Service::signals;
  return {.address = options.address,
          .port = options.port,
          .max_connections = options.max_connections,
          .answer_timeout = options.wait + Millis(20'000),  // and then the stores have theirs
          .on_served = counting(metrics, signals ? "gateway" : "ro")};
}

Result<int> run(const Options& options) {
  apps::EndingSignals signals;
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
  auto server = http::Server::start(std::move(router), server_options(options, *metrics), workers);
  if (!server) return server.error();
  std::jthread loop;
  if (orchestrator) {
    loop = std::jthread([&](const std::stop_token& stop) { orchestrator->run(stop); });
  }
  log().info("listening on " + (*server)->url());

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
