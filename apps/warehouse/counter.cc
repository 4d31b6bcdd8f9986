#include "apps/warehouse/counter.h"

#include <unistd.h>

#include "apps/warehouse/effects.h"
#include "apps/warehouse/observed_event.h"
#include "baton/broker.h"
#include "baton/consumer.h"
#include "baton/consumer_metrics.h"
#include "baton/metrics_server.h"
#include "observe/event_logging.h"

namespace baton::warehouse {
namespace {

Result<void> prepare(const std::string& url) {
  auto database = sql::Connection::open(url, {.name = "effects", .application = "warehouse"});
  if (!database) return database.error();
  return install_effects(**database);
}

}  // namespace

Result<void> count_events(const CounterSettings& settings, const std::stop_token& stop) {
  const std::string node = settings.node.empty() ? std::to_string(getpid()) : settings.node;
  auto broker = Broker::open(settings.broker);
  if (!broker) return broker.error();
  if (auto ok = prepare(settings.effects); !ok) return ok;

  observe::Log out({.service = "warehouse-count",
                    .node = node,
                    .format = settings.log_format,
                    .level = settings.log_level});
  const observe::Logger log = out.named("warehouse.count");
  const observe::ConsumerLog events(log);
  const auto metrics = std::make_shared<observe::Metrics>();
  const observe::ConsumerMetrics counting(metrics, kCountQueue);
  std::unique_ptr<observe::MetricsServer> server;
  if (!settings.metrics.empty()) {
    auto started = observe::MetricsServer::start(settings.metrics, metrics);
    if (!started) return started.error();
    server = std::move(*started);
    if (!server->warning().empty()) log.warn(server->warning());
  }
  const auto noted = [&](const ConsumerNote& note) {
    events.write(note);
    counting.count(note);
  };
  Consumer consumer(
      *broker, settings.effects,
      {.name = kCountQueue, .queue = kCountQueue, .topology = topology(), .on_note = noted},
      observe::in_event_context(
          [&node](Handling& handling) { return add_effect(handling, node); }));
  const std::string where = server ? ", metrics on " + server->url() + "/metrics" : "";
  log.info("counting the events of " + (*broker)->describe() + where);
  auto ended = consumer.run(stop);
  log.info("stopped");
  return ended;
}

}  // namespace baton::warehouse
