#pragma once

// What the five services have in common. A service is a ServiceSpec: its tables, what it consumes,
// what it serves. Everything else is here:
//
//   database ── schema, inbox, outbox, fence: made or brought up to date at the start
//   Relay        ── outbox ─▶ broker, if it publishes: a thread
//   Consumer     ── queue ─▶ handler: a thread
//   Elector      ── leader_work, on one replica: a thread
//   http::Server ── /healthz /readyz /metrics and the service's own paths
//
// run() returns after SIGTERM or SIGINT: it takes no new requests, finishes what is in hand, and
// gives up its locks. After SIGKILL nothing is lost either.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/documents/common/health.h"
#include "apps/documents/common/settings.h"
#include "apps/documents/common/work.h"
#include "baton/elector.h"
#include "baton/locks.h"
#include "baton/metrics.h"
#include "baton/result.h"
#include "http/router.h"
#include "observe/log.h"
#include "sql/pool.h"

namespace baton::documents {

// What a service is made with; outlives its spec.
struct ServiceContext {
  const Settings& settings;
  sql::Pool& database;
  observe::Log& log;
  observe::Metrics& metrics;
};

struct ServiceSpec {
  // Its tables, for both kinds of database, made at the first start. `version` is kept beside them,
  // in SERVICE_version: a program refuses tables that are newer than it.
  std::string_view postgres_tables;
  std::string_view sqlite_tables;
  int version = 1;

  bool publishes = false;  // has an outbox, and a relay for it
  // Its handler needs something besides its own database. While that is away many events fail in a
  // row: then one at a time is tried, and no retry is used for two hours, or until one succeeds. In
  // other services events that fail are poison, and need not wait for that to become dead letters.
  bool needs_others = false;

  std::string queue;  // where its events come from
  std::function<Handled(Work&)> handle;
  std::function<void(Work&)> give_up;  // in the transaction of the dead letter; may be empty
  std::function<Result<void>()> before_commit;  // of ConsumerOptions; may be empty

  std::function<void(http::Router&)> add_routes;
  std::string_view api;  // its openapi.json: these routes (api_document.h)

  // Work of one replica at a time. Its writes begin with fence(leadership).
  std::function<void(Leadership&, std::stop_token)> leader_work;

  // Now and then, on every replica: old rows, gauges.
  std::function<void(const Tx&)> housekeeping;
};

using MakeService = ServiceSpec (*)(const ServiceContext& context);

// Runs a service until a signal ends it. Gives the exit code.
[[nodiscard]] Result<int> run_service(MakeService make, const Settings& settings);

// Opens the database and brings its tables up to date.
[[nodiscard]] Result<void> install_tables(sql::Connection& database, const std::string& service,
                                          const ServiceSpec& spec);

// A handler of HTTP that uses the database: what it throws is answered 503 or 500, and logged. The
// header X-Correlation-Id of its request can be used as it is: it was made if it was not there or
// not fit to be. Log lines of the handler and its answer have it.
using DatabaseHandler = std::function<http::Response(sql::Connection&, const http::Request&)>;
[[nodiscard]] http::Router::Handler with_database(sql::Pool& database, DatabaseHandler handler,
                                                  observe::Logger log = {});

// All that a service serves.
[[nodiscard]] http::Router make_router(const ServiceSpec& spec, const ServiceContext& context,
                                       Health& health);

}  // namespace baton::documents
