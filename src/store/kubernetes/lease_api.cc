#include "store/kubernetes/lease_api.h"

#include "json/json.h"

namespace baton::store::kubernetes {
namespace {

using http_client::HttpResponse;
using nlohmann::json;

constexpr const char* kSelector = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dbaton";
constexpr int kPage = 500;

// Empty if there is no text at that place.
std::string text_at(const json& answer, const char* place) {
  const json::json_pointer pointer(place);
  if (!answer.is_object() || !answer.contains(pointer)) return {};
  const json& value = answer[pointer];
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace

LeaseApi::LeaseApi(const Cluster& cluster, Clocks clocks)
    : leases_("/apis/coordination.k8s.io/v1/namespaces/" + cluster.space + "/leases"),
      clocks_(std::move(clocks)),
      server_(cluster, [this](const HttpResponse& response) { note_date(response); }) {}

ClockReading LeaseApi::now() const {
  const auto here = clocks_.here();
  return {here, clocks_.server ? clocks_.server() : server_clock_.at(here)};
}

void LeaseApi::note_date(const HttpResponse& response) {
  if (const auto date = parse_http_date(response.header("date"))) {
    server_clock_.heard(*date, clocks_.here());
  }
}

Result<std::optional<LeaseObject>> LeaseApi::get(const std::string& name, Deadline deadline) {
  const ApiCall call{.verb = "get", .method = "GET", .path = leases_ + "/" + name};
  auto response = server_.send(call, deadline);
  if (!response) return response.error();
  if (response->status == 404) return std::optional<LeaseObject>();
  if (!response->ok()) return server_.refusal(call, *response);
  auto lease = parse_lease(response->body);
  if (!lease) return lease.error();
  return std::optional<LeaseObject>(std::move(*lease));
}

Result<Written> LeaseApi::written(const Result<HttpResponse>& response) {
  if (response->status == 409) return Written{};
  auto lease = parse_lease(response->body);
  if (!lease) {
    Error error = lease.error();
    error.in_doubt = true;
    return error;
  }
  return Written{Written::Fate::done, std::move(*lease)};
}

Result<Written> LeaseApi::create(const std::string& body, Deadline deadline) {
  const ApiCall call{
      .verb = "create", .method = "POST", .path = leases_, .body = body, .writes = true};
  auto response = server_.send(call, deadline);
  if (!response) return response.error();
  if (!response->ok() && response->status != 409) return server_.refusal(call, *response);
  return written(response);
}

Result<Written> LeaseApi::update(const std::string& name, const std::string& body,
                                 Deadline deadline) {
  const ApiCall call{.verb = "update",
                     .method = "PUT",
                     .path = leases_ + "/" + name,
                     .body = body,
                     .writes = true};
  auto response = server_.send(call, deadline);
  if (!response) return response.error();
  if (response->status == 404) return Written{};
  if (!response->ok() && response->status != 409) return server_.refusal(call, *response);
  return written(response);
}

Result<Written> LeaseApi::remove(const LeaseObject& lease, Deadline deadline) {
  const json options = {
      {"apiVersion", "v1"},
      {"kind", "DeleteOptions"},
      {"preconditions", {{"uid", lease.uid}, {"resourceVersion", std::to_string(lease.version)}}}};
  const ApiCall call{.verb = "delete",
                     .method = "DELETE",
                     .path = leases_ + "/" + lease.name,
                     .body = options.dump(),
                     .writes = true};
  auto response = server_.send(call, deadline);
  if (!response) return response.error();
  if (response->status == 404 || response->status == 409) return Written{};
  if (!response->ok()) return server_.refusal(call, *response);
  return Written{Written::Fate::done, {}};
}

Result<LeaseList> LeaseApi::list(const std::string& from, Deadline deadline) {
  ApiCall call{.verb = "list",
               .method = "GET",
               .path = leases_ + "?" + kSelector + "&limit=" + std::to_string(kPage)};
  if (!from.empty()) call.path += "&continue=" + from;
  auto response = server_.send(call, deadline);
  if (!response) return response.error();
  const json answer = parse_json(response->body);
  std::string next = text_at(answer, "/metadata/continue");
  if (response->status == 410) {
    // The pages so far are of a version that the server has forgotten; it says how to go on with
    // what there is now.
    if (!next.empty()) return LeaseList{.leases = {}, .next = std::move(next)};
    return Error{.code = Code::unavailable,
                 .message = server_.address() + " has forgotten where the list was",
                 .retryable = true};
  }
  if (!response->ok()) return server_.refusal(call, *response);
  if (!answer.is_object() || !answer.contains("items") || !answer["items"].is_array()) {
    return Error{.code = Code::bad_store, .message = server_.address() + " sent no list of Leases"};
  }
  LeaseList list;
  for (const json& item : answer["items"]) {
    auto lease = parse_lease(item.dump());
    if (!lease) return lease.error();
    list.leases.push_back(std::move(*lease));
  }
  list.next = std::move(next);
  return list;
}

Result<std::string> LeaseApi::server_version(Deadline deadline) {
  const ApiCall call{.verb = "get", .method = "GET", .path = "/version"};
  auto response = server_.send(call, deadline);
  if (!response) return response.error();
  const json answer = parse_json(response->body);
  const std::string known = text_at(answer, "/gitVersion");
  return known.empty() ? std::string("unknown") : known;
}

Result<bool> LeaseApi::may(const char* verb, Deadline deadline) {
  const json review = {{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SelfSubjectAccessReview"},
                       {"spec",
                        {{"resourceAttributes",
                          {{"namespace", server_.space()},
                           {"verb", verb},
                           {"group", "coordination.k8s.io"},
                           {"resource", "leases"}}}}}};
  const ApiCall call{.verb = "get",
                     .method = "POST",
                     .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                     .body = review.dump()};
  auto response = server_.send(call, deadline);
  if (!response) return response.error();
  if (!response->ok()) return server_.refusal(call, *response);
  const json answer = parse_json(response->body);
  const auto allowed = "/status/allowed"_json_pointer;
  return answer.is_object() && answer.contains(allowed) && answer[allowed] == true;
}

}  // namespace baton::store::kubernetes
