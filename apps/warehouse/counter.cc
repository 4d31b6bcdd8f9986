#include "apps/warehouse/counter.h"

#include <unistd.h>

#include "apps/warehouse/effects.h"
#include "apps/warehouse/observed_event.h"
#include "baton/broker.h"
#include "baton/consumer.h"

namespace baton::warehouse {
namespace {

using Kind = ConsumerNote::Kind;

observe::LogLevel level_of(Kind kind) {
  switch (kind) {
    case Kind::processed:
    case Kind::skipped: return observe::LogLevel::debug;
    case Kind::resumed:
    case Kind::breaker_closed: return observe::LogLevel::info;
    default: return observe::LogLevel::warn;
  }
}

void log_note(const observe::Logger& log, const ConsumerNote& note) {
  observe::LogFields fields;
  if (note.event != nullptr) {
    fields = {{"eventId", note.event->id},
              {"eventType", note.event->type},
              {"aggregateId", note.event->aggregate}};
  }
  if (!note.reason.empty()) fields.emplace_back("why", note.reason);
  log.log(level_of(note.kind), note.message, fields);
}

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
  Consumer consumer(*broker, settings.effects,
                    {.name = kCountQueue,
                     .queue = kCountQueue,
                     .topology = topology(),
                     .on_note = [&log](const ConsumerNote& note) { log_note(log, note); }},
                    [&node](Handling& handling) { return add_effect(handling, node); });
  log.info("counting the events of " + (*broker)->describe());
  auto ended = consumer.run(stop);
  log.info("stopped");
  return ended;
}

}  // namespace baton::warehouse
