#include "cli/open_client.h"

#include <utility>

#include "cli/open_timeout.h"

#ifdef BATON_HAS_METRICS
#include "baton/lock_metrics.h"
#include "baton/metrics_server.h"
#include "cli/json_writer.h"
#endif

namespace baton::cli {
namespace {

Result<LockClient> open_patiently(const std::string& url, ClientOptions options,
                                  const TryAgain& again, std::optional<Instant> until) {
  while (true) {
    options.open_timeout = until ? open_timeout(left_until(*until)) : open_timeout();
    auto locks = open(url, options);
    if (locks || !again(locks.error())) return locks;
  }
}

}  // namespace

#ifdef BATON_HAS_METRICS

Result<OpenedClient> open_client(const Settings& settings, const std::string& metrics,
                                 const Output& out, const TryAgain& again,
                                 std::optional<Instant> until, std::function<bool()> leads) {
  ClientOptions options{.owner = settings.owner};
  std::shared_ptr<observe::MetricsServer> server;
  std::shared_ptr<observe::Metrics> counted;
  if (!metrics.empty()) {
    counted = std::make_shared<observe::Metrics>();
    auto started = observe::MetricsServer::start(metrics, counted, std::move(leads));
    if (!started) return started.error();
    server = std::move(*started);
    options.observer = std::make_shared<observe::LockMetrics>(counted);
  }
  auto locks = open_patiently(settings.store, options, again, until);
  if (!locks) return locks.error();
  if (server != nullptr && !server->warning().empty()) {
    const std::string& warning = server->warning();
    JsonWriter json;
    json.begin_object().field("event", "warning").field("message", warning).end_object();
    out.event("warning: " + warning, json.text());
  }
  if (metrics.ends_with(":0")) {
    const std::string url = server->url() + "/metrics";
    JsonWriter json;
    json.begin_object().field("event", "metrics").field("url", url).end_object();
    out.event("metrics on " + url, json.text());
  }
  return OpenedClient{std::move(server), std::move(*locks), std::move(counted)};
}

#else

Result<OpenedClient> open_client(const Settings& settings, const std::string& metrics,
                                 const Output& /*out*/, const TryAgain& again,
                                 std::optional<Instant> until, std::function<bool()> /*leads*/) {
  if (!metrics.empty()) {
    return Error{.code = Code::unsupported,
                 .message =
                     "this build of Baton has no --metrics: leave it out, or build Baton where "
                     "prometheus-cpp and Boost are installed"};
  }
  auto locks = open_patiently(settings.store, {.owner = settings.owner}, again, until);
  if (!locks) return locks.error();
  return OpenedClient{nullptr, std::move(*locks), nullptr};
}

#endif

}  // namespace baton::cli
