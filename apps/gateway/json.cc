#include "apps/gateway/json.h"

#include <algorithm>

#include "apps/gateway/log.h"
#include "apps/gateway/timestamp.h"
#include "json/json.h"

namespace baton::gateway {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json describe(const WorkflowExecution& execution) {
  Json json = {{"name", execution.name},
               {"remediationRequest", execution.request},
               {"target", execution.target.text()},
               {"phase", to_string(execution.phase)},
               {"created", timestamp(execution.created)}};
  if (!is_active(execution.phase)) json["finished"] = timestamp(execution.finished);
  return json;
}

Json describe(const RemediationRequest& request) {
  Json json = {{"name", request.name},
               {"fingerprint", request.fingerprint},
               {"target", request.target.text()},
               {"phase", to_string(request.phase)},
               {"duplicates", request.duplicates},
               {"created", timestamp(request.created)},
               {"lastSeen", timestamp(request.last_seen)}};
  if (!request.execution.empty()) json["workflowExecution"] = request.execution;
  return json;
}

template <typename Object>
std::string list(const char* name, const std::vector<Object>& objects) {
  Json all = Json::array();
  for (const auto& object : objects) all.push_back(describe(object));
  return dump({{name, all}});
}

}  // namespace

std::string to_json(const RemediationRequest& request) {
  Json json = describe(request);
  json["signal"] = parse_json(request.signal);
  return dump(json);
}

std::string to_json(const WorkflowExecution& execution) { return dump(describe(execution)); }

std::string to_json(const std::vector<RemediationRequest>& requests) {
  return list("remediationRequests", requests);
}

std::string to_json(const std::vector<WorkflowExecution>& executions) {
  return list("workflowExecutions", executions);
}

// An Alertmanager repeats a notification that was answered 5xx, and drops one that was answered
// 4xx: so what is wrong with one alert must not cost the others their answer.
http::Response notified(const std::vector<std::pair<std::string, http::Response>>& alerts) {
  Json results = Json::array();
  http::Response response;
  for (const auto& [name, answer] : alerts) {
    Json result = {{"alertName", name}};
    result.update(parse_json(answer.body));
    results.push_back(std::move(result));
    if (answer.status < 500) continue;
    response.status = 503;
    response.headers = answer.headers;  // Retry-After
  }
  response.body = dump({{"alerts", results}});
  return response;
}

http::Response created(const RemediationRequest& request) {
  return {.status = 201,
          .body = dump({{"status", "created"},
                        {"remediationRequest", request.name},
                        {"fingerprint", request.fingerprint}}),
          .headers = {{"Location", "/requests/" + request.name}}};
}

http::Response duplicate(const RemediationRequest& request, std::int64_t duplicates) {
  return {.status = 202,
          .body = dump({{"status", "duplicate"},
                        {"remediationRequest", request.name},
                        {"fingerprint", request.fingerprint},
                        {"duplicates", duplicates}}),
          .headers = {{"Location", "/requests/" + request.name}}};
}

std::optional<Phase> parse_ending(std::string_view text) {
  const auto json = parse_json(text);
  if (!json.is_object() || !json.contains("phase") || !json["phase"].is_string()) {
    return std::nullopt;
  }
  const auto phase = parse_phase(json["phase"].get<std::string>());
  if (!phase || is_active(*phase)) return std::nullopt;
  return phase;
}

http::Response unavailable(std::string_view what, const Error& error) {
  log().error(what, {{"error", error.message}});
  const auto seconds = std::clamp<std::int64_t>((error.retry_after.count() + 999) / 1000, 1, 60);
  http::Response response =
      http::error_response(503, to_string(error.code), std::string(what) + "; try again");
  response.headers.emplace_back("Retry-After", std::to_string(seconds));
  return response;
}

}  // namespace baton::gateway
