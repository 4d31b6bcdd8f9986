#include "cli/counted_locks.h"

#ifdef BATON_HAS_METRICS

#include "cli/json_writer.h"
#include "observe/lock_metrics.h"
#include "observe/metrics_server.h"

namespace baton::cli {

Result<CountedLocks> open_counted(const Settings& settings, const std::string& metrics,
                                  const Output& out) {
  if (metrics.empty()) {
    auto locks = open(settings.store, {.owner = settings.owner});
    if (!locks) return locks.error();
    return CountedLocks{nullptr, std::move(*locks)};
  }
  const auto counted = std::make_shared<observe::Metrics>();
  auto server = observe::MetricsServer::start(metrics, counted);
  if (!server) return server.error();
  auto locks = open(settings.store, {.owner = settings.owner,
                                     .observer = std::make_shared<observe::LockMetrics>(counted)});
  if (!locks) return locks.error();
  if (metrics.ends_with(":0")) {
    const std::string url = (*server)->url() + "/metrics";
    JsonWriter json;
    json.begin_object().field("event", "metrics").field("url", url).end_object();
    out.event("metrics on " + url, json.text());
  }
  return CountedLocks{std::move(*server), std::move(*locks)};
}

}  // namespace baton::cli

#else

namespace baton::cli {

Result<CountedLocks> open_counted(const Settings& settings, const std::string& metrics,
                                  const Output& /*out*/) {
  if (!metrics.empty()) {
    return Error{.code = Code::unsupported, .message = "this build of Baton has no --metrics"};
  }
  auto locks = open(settings.store, {.owner = settings.owner});
  if (!locks) return locks.error();
  return CountedLocks{nullptr, std::move(*locks)};
}

}  // namespace baton::cli

#endif
