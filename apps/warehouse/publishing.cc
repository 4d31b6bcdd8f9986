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
    : log_(std::move(log), {.published = observe::LogLevel::debug}),
      metrics_(metrics, kRelay),
      relay_(locks, settings.data, std::move(broker), options(settings)) {}

RelayOptions Publishing::options(const PublishingSettings& settings) {
  return {.name = kRelay,
          .ttl = settings.ttl,
          .topology = topology(),
          .statement_timeout = settings.statement_timeout,
          .on_error = [this](const Error& error) { log_.write(error); },
          .on_event =
              [this](const RelayEvent& event) {
                log_.write(event);
                metrics_.count(event);
              }};
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
