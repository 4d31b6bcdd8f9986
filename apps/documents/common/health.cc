#include "apps/documents/common/health.h"

#include "apps/documents/common/work.h"

namespace baton::documents {
namespace {

constexpr Millis kLookFor{2'000};
constexpr Millis kKeepFor{1'000};

}  // namespace

Health::Answer Health::look() const {
  const Deadline by = BootClock::now() + kLookFor;
  nlohmann::json body;
  auto reasons = nlohmann::json::array();

  auto session = database_.take(by);
  const bool database = session && (*session)->query("SELECT 1", {}, by);
  body["database"] = database ? "ok" : "does not answer";
  if (!database) reasons.push_back("the database does not answer");

  const auto queues = broker_.queues({.queues = {{.name = queue_}}}, by);
  const bool broker = queues && !queues->empty() && queues->front().exists;
  body["broker"] =
      broker ? "ok" : (queues ? "the queue " + queue_ + " is missing" : queues.error().message);
  if (!broker && settings_.service != "ingestion") {
    reasons.push_back("broker: " + body["broker"].get<std::string>());
  }
  if (broker) body["queued"] = queues->front().ready;

  if (relay_ != nullptr) {
    const RelayStats stats = relay_->stats();
    body["outboxPending"] = stats.waiting_pending;
    body["outboxOldestMs"] = stats.oldest.count();
    if (stats.oldest > settings_.max_lag) {
      reasons.push_back("an event waits in the outbox for longer than --max-lag");
    }
  }
  const bool ready = reasons.empty();
  body["reasons"] = std::move(reasons);
  body["status"] = ready ? "ready" : "not ready";
  body["service"] = settings_.service;
  return {.status = ready ? 200 : 503, .body = dump(body) + "\n"};
}

void Health::add_routes(http::Router& router, observe::Metrics& metrics) {
  router.add(
      "GET", "/healthz",
      [](const http::Request&) { return http::Response{.body = "{\"status\":\"alive\"}\n"}; },
      http::Router::Run::at_once);
  router.add("GET", "/readyz", [this](const http::Request&) {
    const std::lock_guard lock(mutex_);
    if (BootClock::now() >= good_until_) {
      last_ = look();
      good_until_ = BootClock::now() + kKeepFor;
    }
    return http::Response{.status = last_.status, .body = last_.body};
  });
  router.add("GET", "/metrics", [&metrics](const http::Request&) {
    return http::Response{.body = metrics.text(),
                          .content_type = std::string(observe::Metrics::kContentType)};
  });
}

}  // namespace baton::documents
