#include "apps/documents/common/work.h"

#include <csignal>
#include <stdexcept>

#include "apps/documents/common/topology.h"
#include "event/message_headers.h"

namespace baton::documents {

std::string Work::occurred_at() const {
  const auto& headers = handling_.message().headers;
  const auto found = headers.find(std::string(event::header::occurred_at));
  const bool usable = found != headers.end() && event::parse_time(found->second).has_value();
  return usable ? found->second : now_text();
}

nlohmann::json Work::payload() const {
  auto payload = parse_json_or_throw(event().payload);
  if (!payload.is_object()) throw std::runtime_error("the payload is not an object");
  return payload;
}

std::string Work::publish(std::string_view type, const nlohmann::json& payload) const {
  std::string id = need(handling_.outbox().add({.type = std::string(type),
                                                .aggregate = document(),
                                                .aggregate_type = "Document",
                                                .payload = dump(payload)}));
  log_field("outboxEventId", id);
  return id;
}

void Work::log_field(std::string name, std::string value) const {
  fields_.emplace_back(std::move(name), std::move(value));
}

void Work::simulate(const nlohmann::json& payload, std::string_view service) const {
  if (!allow_simulation_) return;
  const auto metadata = payload.find("metadata");
  if (metadata == payload.end() || !metadata->is_object()) return;
  if (metadata->value("simulateAt", "enrichment") != service) return;
  const std::string what = metadata->value("simulate", "");
  if (what == "poison") throw std::runtime_error("simulated: this document cannot be processed");
  if (what == "flaky" && attempt() <= 2) throw std::runtime_error("simulated: fails twice");
  if (what == "crash") (void)raise(SIGKILL);
}

void publish_failed(const Work& work, std::string_view stage) {
  const auto document = work.payload();
  (void)work.publish(type::failed, {{"documentId", work.document()},
                                    {"title", document.value("title", "")},
                                    {"owner", document.value("owner", "")},
                                    {"stage", stage},
                                    {"reason", work.last_error()},
                                    {"failedEventId", work.event().id}});
}

std::string dump(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace baton::documents
