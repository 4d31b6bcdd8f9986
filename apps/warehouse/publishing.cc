#include "apps/warehouse/publishing.h"

#include <condition_variable>
#include <mutex>

#include "apps/warehouse/observed_event.h"

namespace baton::warehouse {
namespace {

// One warehouse has one store of locks, where its jobs have fixed names, too.
constexpr const char* kRelay = "warehouse";

void show_every_second(const Relay& relay, const observe::OutboxMetrics& metrics,
                       const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    metrics.show(relay.stats());
    never.wait_for(lock, stop, std::chrono::seconds(1), [] { return false; });
  }
}

}  // namespace

Publishing::Publishing(const LockClient& locks, std::shared_ptr<Broker> broker,
                       const PublishingSettings& settings,
                       const std::shared_ptr<observe::Metrics>& metrics, observe::Logger log)
    : log_(std::move(log)),
      metrics_(metrics, kRelay),
      relay_(locks, settings.data, std::move(broker), options(settings)) {}

RelayOptions Publishing::options(const PublishingSettings& settings) {
  return {
      .name = kRelay,
      .ttl = settings.ttl,
      .topology = topology(),
      .statement_timeout = settings.statement_timeout,
      .on_error =
          [this](const Error& error) { log_.warn("events are not published: " + error.message); },
      .on_event = [this](const RelayEvent& event) { happened(event); }};
}

void Publishing::happened(const RelayEvent& event) const {
  metrics_.count(event);
  const std::string lane = std::to_string(event.lane);
  switch (event.kind) {
    case RelayEvent::Kind::published:
      log_.debug("event published: " + event.event_id, {{"lane", lane}});
      break;
    case RelayEvent::Kind::returned:
      log_.warn("event returned: " + event.event_id, {{"why", event.why}});
      break;
    case RelayEvent::Kind::failed:
      log_.error("event failed: " + event.event_id, {{"why", event.why}});
      break;
    case RelayEvent::Kind::refused:
      log_.debug("event refused: " + event.event_id, {{"why", event.why}});
      break;
    case RelayEvent::Kind::lane_taken: log_.info("lane " + lane + " of the outbox taken"); break;
    case RelayEvent::Kind::lane_left: log_.info("lane " + lane + " of the outbox left"); break;
    case RelayEvent::Kind::swept:
      log_.error("events that nobody knew of: " + std::to_string(event.count), {{"lane", lane}});
      break;
    case RelayEvent::Kind::recovered: log_.info("events are published again"); break;
  }
}

Result<void> Publishing::start() {
  if (auto ok = relay_.start(); !ok) return ok;
  showing_ = std::jthread(
      [this](const std::stop_token& stop) { show_every_second(relay_, metrics_, stop); });
  return {};
}

void Publishing::stop() {
  relay_.stop();
  showing_ = {};
}

}  // namespace baton::warehouse
