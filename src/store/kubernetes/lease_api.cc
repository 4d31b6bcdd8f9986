#include "store/kubernetes/lease_api.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "core/backoff.h"

namespace baton::store::kubernetes {
namespace {

using net::HttpResponse;
using nlohmann::json;

constexpr Millis kMostPause{30'000};
constexpr const char* kSelector = "labelSelector=app.kubernetes.io%2Fmanaged-by%3Dbaton";
constexpr int kPage = 500;

std::uint64_t random_bits() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

// Empty if there is no text at that place.
std::string text_at(const json& answer, const char* place) {
  const json::json_pointer pointer(place);
  if (!answer.is_object() || !answer.contains(pointer)) return {};
  const json& value = answer[pointer];
  return value.is_string() ? value.get<std::string>() : std::string();
}

// What the server says about it, in one line.
std::string said(const HttpResponse& response) {
  std::string text = text_at(json::parse(response.body, nullptr, false), "/message");
  if (text.empty()) text = "HTTP status " + std::to_string(response.status);
  if (text.size() > 400) text.resize(400);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

Millis retry_after(const HttpResponse& response) {
  const std::string_view text = response.header("retry-after");
  int seconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::clamp(Millis(std::int64_t{seconds} * 1000), Millis(0), kMostPause);
}

std::string limit_of(Deadline deadline) {
  const auto left = std::chrono::floor<Millis>(deadline - BootClock::now());
  return "timeout=" + std::to_string(std::max<std::int64_t>(1, left.count())) + "ms";
}

bool overloaded(int status) { return status == 429 || status >= 500; }

}  // namespace

LeaseApi::LeaseApi(const Cluster& cluster, Clocks clocks)
    : address_(cluster.address),
      space_(cluster.space),
      leases_("/apis/coordination.k8s.io/v1/namespaces/" + cluster.space + "/leases"),
      clocks_(std::move(clocks)),
      credentials_(cluster),
      http_({.tls = cluster.tls}) {}

Moment LeaseApi::now() const {
  const auto here = clocks_.here();
  return {here, clocks_.server ? clocks_.server() : server_clock_.at(here)};
}

void LeaseApi::note_date(const HttpResponse& response) {
  if (const auto date = parse_http_date(response.header("date"))) {
    server_clock_.heard(*date, clocks_.here());
  }
}

void LeaseApi::close_gate(Millis pause) {
  const std::lock_guard lock(mutex_);
  gate_ = std::max<Instant>(gate_, BootClock::now() + pause);
}

Result<void> LeaseApi::pass_gate(Deadline deadline) {
  for (;;) {
    Instant opens;
    {
      const std::lock_guard lock(mutex_);
      opens = gate_;
    }
    const Instant now = BootClock::now();
    if (opens <= now) return {};
    if (opens >= deadline) {
      return Error{.code = Code::unavailable,
                   .message = address_ + " is overloaded and asked for a pause",
                   .retryable = true,
                   .retry_after = std::chrono::ceil<Millis>(opens - now)};
    }
    std::this_thread::sleep_for(std::min<BootClock::duration>(opens - now, Millis(100)));
  }
}

Result<net::HttpRequest> LeaseApi::request(const Call& call) {
  auto authorization = credentials_.authorization();
  if (!authorization) return authorization.error();
  net::HttpRequest made{
      .method = call.method, .url = address_ + call.path, .headers = {}, .body = call.body};
  if (!authorization->empty()) made.headers.emplace_back("Authorization", *authorization);
  if (!call.body.empty()) made.headers.emplace_back("Content-Type", "application/json");
  made.headers.emplace_back("Accept", "application/json");
  return made;
}

Error LeaseApi::refusal(const Call& call, const HttpResponse& response) const {
  Error error{.code = Code::unavailable, .message = address_ + ": " + said(response)};
  const std::string what =
      "'" + std::string(call.verb) + "' leases.coordination.k8s.io in namespace '" + space_ + "'";
  if (response.status == 401) {
    error.code = Code::unauthorized;
    error.message = address_ + " does not accept the token or certificate (asked to " + what + ")";
  } else if (response.status == 403) {
    error.code = Code::unauthorized;
    error.message = "this user may not " + what + "; deploy/kubernetes/rbac.yaml has the rights " +
                    "that are needed. The API server says: " + said(response);
  } else if (response.status == 404) {
    error.code = Code::bad_store;
    error.message = "cannot " + what + ": " + said(response);
  } else if (overloaded(response.status)) {
    error.retryable = true;
    error.in_doubt = call.writes && response.status != 429;
    error.retry_after = retry_after(response);
  } else {
    error.code = Code::bad_store;
    error.message = "cannot " + what + ": " + said(response);
  }
  return error;
}

// Any answer that the caller has to look at: the others are dealt with here.
Result<HttpResponse> LeaseApi::send(const Call& call, Deadline deadline) {
  core::Backoff backoff(Millis(50), Millis(2000));
  for (bool doubted = false;;) {
    if (auto passed = pass_gate(deadline); !passed) return passed.error();
    auto made = request(call);
    if (!made) return made.error();
    auto response = http_.send(*made, deadline);
    if (!response) {
      response.error().in_doubt = response.error().in_doubt && call.writes;
      return response;
    }
    note_date(*response);
    if (response->status == 401 && !doubted) {
      doubted = true;
      credentials_.doubt();
      continue;
    }
    if (overloaded(response->status)) {
      close_gate(std::max(retry_after(*response), backoff.next(random_bits())));
      if (response->status != 429 && call.writes) return refusal(call, *response);
      if (BootClock::now() >= deadline) return refusal(call, *response);
      continue;
    }
    if (response->status == 401 || response->status == 403) return refusal(call, *response);
    return response;
  }
}

Result<std::optional<LeaseObject>> LeaseApi::get(const std::string& name, Deadline deadline) {
  const Call call{.verb = "get", .method = "GET", .path = leases_ + "/" + name};
  auto response = send(call, deadline);
  if (!response) return response.error();
  if (response->status == 404) return std::optional<LeaseObject>();
  if (!response->ok()) return refusal(call, *response);
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
  const Call call{.verb = "create",
                  .method = "POST",
                  .path = leases_ + "?" + limit_of(deadline),
                  .body = body,
                  .writes = true};
  auto response = send(call, deadline);
  if (!response) return response.error();
  if (!response->ok() && response->status != 409) return refusal(call, *response);
  return written(response);
}

Result<Written> LeaseApi::update(const std::string& name, const std::string& body,
                                 Deadline deadline) {
  const Call call{.verb = "update",
                  .method = "PUT",
                  .path = leases_ + "/" + name + "?" + limit_of(deadline),
                  .body = body,
                  .writes = true};
  auto response = send(call, deadline);
  if (!response) return response.error();
  if (response->status == 404) return Written{};
  if (!response->ok() && response->status != 409) return refusal(call, *response);
  return written(response);
}

Result<Written> LeaseApi::remove(const LeaseObject& lease, Deadline deadline) {
  const json options = {
      {"apiVersion", "v1"},
      {"kind", "DeleteOptions"},
      {"preconditions", {{"uid", lease.uid}, {"resourceVersion", std::to_string(lease.version)}}}};
  const Call call{.verb = "delete",
                  .method = "DELETE",
                  .path = leases_ + "/" + lease.name + "?" + limit_of(deadline),
                  .body = options.dump(),
                  .writes = true};
  auto response = send(call, deadline);
  if (!response) return response.error();
  if (response->status == 404 || response->status == 409) return Written{};
  if (!response->ok()) return refusal(call, *response);
  return Written{Written::Fate::done, {}};
}

Result<LeaseList> LeaseApi::list(const std::string& from, Deadline deadline) {
  Call call{.verb = "list",
            .method = "GET",
            .path = leases_ + "?" + kSelector + "&limit=" + std::to_string(kPage)};
  if (!from.empty()) call.path += "&continue=" + from;
  auto response = send(call, deadline);
  if (!response) return response.error();
  if (response->status == 410) return LeaseList{.leases = {}, .next = "again"};
  if (!response->ok()) return refusal(call, *response);
  const json answer = json::parse(response->body, nullptr, false);
  if (!answer.is_object() || !answer.contains("items") || !answer["items"].is_array()) {
    return Error{.code = Code::bad_store, .message = address_ + " sent no list of Leases"};
  }
  LeaseList list;
  for (const json& item : answer["items"]) {
    auto lease = parse_lease(item.dump());
    if (!lease) return lease.error();
    list.leases.push_back(std::move(*lease));
  }
  list.next = text_at(answer, "/metadata/continue");
  return list;
}

Result<std::string> LeaseApi::server_version(Deadline deadline) {
  const Call call{.verb = "get", .method = "GET", .path = "/version"};
  auto response = send(call, deadline);
  if (!response) return response.error();
  const json answer = json::parse(response->body, nullptr, false);
  const std::string known = text_at(answer, "/gitVersion");
  return known.empty() ? std::string("unknown") : known;
}

Result<bool> LeaseApi::may(const char* verb, Deadline deadline) {
  const json review = {{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SelfSubjectAccessReview"},
                       {"spec",
                        {{"resourceAttributes",
                          {{"namespace", space_},
                           {"verb", verb},
                           {"group", "coordination.k8s.io"},
                           {"resource", "leases"}}}}}};
  const Call call{.verb = "get",
                  .method = "POST",
                  .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                  .body = review.dump()};
  auto response = send(call, deadline);
  if (!response) return response.error();
  if (!response->ok()) return refusal(call, *response);
  const json answer = json::parse(response->body, nullptr, false);
  const auto allowed = "/status/allowed"_json_pointer;
  return answer.is_object() && answer.contains(allowed) && answer[allowed] == true;
}

}  // namespace baton::store::kubernetes
