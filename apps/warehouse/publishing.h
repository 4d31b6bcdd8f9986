#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "baton/broker.h"
#include "baton/locks.h"
#include "baton/metrics.h"
#include "baton/outbox_metrics.h"
#include "baton/relay.h"
#include "observe/event_logging.h"

namespace baton::warehouse {

struct PublishingSettings {
  std::string data;  // the database with the outbox
  Millis ttl{10'000};
  Millis statement_timeout{10'000};
};

// Publishes what the observers have added to the outbox: the relay of this node, which shares the
// lanes with those of the other nodes, with its metrics and logs.
class Publishing {
 public:
  Publishing(const LockClient& locks, std::shared_ptr<Broker> broker,
             const PublishingSettings& settings, const std::shared_ptr<observe::Metrics>& metrics,
             observe::Logger log);

  Result<void> start();
  void stop();

 private:
  [[nodiscard]] RelayOptions options(const PublishingSettings& settings);

  const observe::RelayLog log_;
  const observe::OutboxMetrics metrics_;
  Relay relay_;
  std::jthread showing_;
};

}  // namespace baton::warehouse
