#pragma once

#include <mutex>
#include <string>

#include "apps/documents/common/settings.h"
#include "baton/broker.h"
#include "baton/metrics.h"
#include "baton/relay.h"
#include "http/router.h"
#include "sql/pool.h"

namespace baton::documents {

// /healthz: the process answers. /readyz: it can work, that is its database answers, its broker
// does, and no event has waited in its outbox for longer than max_lag. A service without a queue of
// its own, or whose broker is away, still takes what it can store: ingestion is ready without a
// broker, since its outbox keeps the events.
class Health {
 public:
  Health(const Settings& settings, sql::Pool& database, Broker& broker, const Relay* relay,
         std::string queue)
      : settings_(settings),
        database_(database),
        broker_(broker),
        relay_(relay),
        queue_(std::move(queue)) {}

  // /healthz, /readyz and /metrics.
  void add_routes(http::Router& router, observe::Metrics& metrics);

 private:
  struct Answer {
    int status = 200;
    std::string body;
  };
  [[nodiscard]] Answer look() const;

  const Settings& settings_;
  sql::Pool& database_;
  Broker& broker_;
  const Relay* relay_;
  const std::string queue_;

  // Probes of several watchers cost one look a second.
  std::mutex mutex_;
  Answer last_;
  Deadline good_until_{};
};

}  // namespace baton::documents
