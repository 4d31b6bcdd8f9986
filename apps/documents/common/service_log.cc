#include "apps/documents/common/service_log.h"

#include <utility>

namespace baton::documents {
namespace {

using observe::LogFields;

constexpr const char* kAggregateKey = "documentId";

// Nobody asks for the fields of an attempt that was rolled back; more than this are never open.
constexpr std::size_t kMostOpen = 1'000;

}  // namespace

ServiceLog::ServiceLog(observe::Log& log, const std::string& service,
                       std::shared_ptr<observe::Metrics> metrics)
    : log_(log.named("documents." + service)),
      handler_(log.named("documents." + service + ".handler")),
      consumer_(log.named("documents." + service + ".consumer"), kAggregateKey),
      relay_(log.named("documents." + service + ".relay")),
      metrics_(std::move(metrics)),
      consumer_metrics_(metrics_, service),
      relay_metrics_(metrics_, service) {}

Handled ServiceLog::handle(const Handling& handling,
                           const std::function<Handled(LogFields&)>& handler) {
  const observe::LogScope scope(observe::event_fields(handling.event(), kAggregateKey));
  handler_.debug("EVENT_PROCESSING");
  LogFields fields;
  Handled handled = handler(fields);
  const std::lock_guard lock(mutex_);
  if (fields_.size() > kMostOpen) fields_.clear();
  fields_[handling.event().id] = std::move(fields);
  return handled;
}

LogFields ServiceLog::take_fields(const std::string& event_id) {
  const std::lock_guard lock(mutex_);
  auto found = fields_.extract(event_id);
  return found.empty() ? LogFields{} : std::move(found.mapped());
}

void ServiceLog::tell(const ConsumerNote& note) {
  const bool decided = note.event != nullptr && note.kind != ConsumerNote::Kind::received;
  const observe::LogScope scope(decided ? take_fields(note.event->id) : LogFields{});
  consumer_.write(note);
  consumer_metrics_.count(note);
}

void ServiceLog::tell(const RelayEvent& event) const {
  const observe::LogScope scope{{kAggregateKey, event.aggregate}};
  relay_.write(event);
  relay_metrics_.count(event);
}

void ServiceLog::tell(const Error& error) const {
  log_.warn("SERVICE_TROUBLE", {{"reason", error.message}});
}

void ServiceLog::tell(const http::Served& served) const {
  metrics_
      ->counter("documents_http_requests_total", "Answers by route and status.",
                {{"route", served.route}, {"status", std::to_string(served.status)}})
      .add();
  if (served.status < 500) return;
  log_.error("REQUEST_FAILED", {{"route", served.route},
                                {"method", served.method},
                                {"status", std::to_string(served.status)}});
}

}  // namespace baton::documents
