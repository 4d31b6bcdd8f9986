#include "store/kubernetes/api_server.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <thread>

#include "core/backoff.h"
#include "json/json.h"

namespace baton::store::kubernetes {
namespace {

using http_client::HttpResponse;
using nlohmann::json;

constexpr Millis kMostPause{30'000};

std::uint64_t random_bits() {
  thread_local std::mt19937_64 random{std::random_device{}()};
  return random();
}

// The server's own words about it, in one line.
std::string said(const HttpResponse& response) {
  const json answer = parse_json(response.body);
  std::string text;
  if (answer.is_object() && answer.contains("message") && answer["message"].is_string()) {
    text = answer["message"].get<std::string>();
  }
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

bool overloaded(int status) { return status == 408 || status == 429 || status >= 500; }

// For the query of a write: how long the server may take for it.
std::string limit_of(Deadline deadline) {
  const auto left = std::chrono::floor<Millis>(deadline - BootClock::now());
  return "timeout=" + std::to_string(std::max<std::int64_t>(1, left.count())) + "ms";
}

}  // namespace

ApiServer::ApiServer(const Cluster& cluster, Heard heard)
    : address_(cluster.address),
      space_(cluster.space),
      heard_(std::move(heard)),
      credentials_(cluster),
      http_({.tls = cluster.tls}) {}

void ApiServer::close_gate(Millis pause) {
  const std::lock_guard lock(mutex_);
  gate_ = std::max<Instant>(gate_, BootClock::now() + pause);
}

Result<void> ApiServer::pass_gate(Deadline deadline) {
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

Result<http_client::HttpRequest> ApiServer::request(const ApiCall& call) {
  auto authorization = credentials_.authorization();
  if (!authorization) return authorization.error();
  http_client::HttpRequest made{
      .method = call.method, .url = address_ + call.path, .headers = {}, .body = call.body};
  if (!authorization->empty()) made.headers.emplace_back("Authorization", *authorization);
  if (!call.body.empty()) {
    const bool patch = made.method == "PATCH";
    made.headers.emplace_back("Content-Type",
                              patch ? "application/merge-patch+json" : "application/json");
  }
  made.headers.emplace_back("Accept", "application/json");
  return made;
}

Error ApiServer::refusal(const ApiCall& call, const HttpResponse& response) const {
  Error error{.code = Code::unavailable, .message = address_ + ": " + said(response)};
  const std::string what = "'" + std::string(call.verb) + "' " + std::string(call.resource) +
                           " in namespace '" + space_ + "'";
  if (response.status == 401) {
    error.code = Code::unauthorized;
    error.message = address_ + " does not accept the token or certificate (asked to " + what + ")";
    error.retryable = credentials_.may_change();  // the next token may be on its way
  } else if (response.status == 403) {
    error.code = Code::unauthorized;
    error.message = "this user may not " + what + "; deploy/kubernetes/rbac.yaml has the rights " +
                    "that are needed. The API server says: " + said(response);
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

Result<HttpResponse> ApiServer::send(const ApiCall& call, Deadline deadline) {
  core::Backoff backoff(Millis(50), Millis(2000));
  for (bool doubted = false;;) {
    if (auto passed = pass_gate(deadline); !passed) return passed.error();
    auto made = request(call);
    if (!made) return made.error();
    made->once = call.writes;
    if (call.writes) made->url += "?" + limit_of(deadline);
    auto response = http_.send(*made, deadline);
    if (!response) {
      response.error().in_doubt = response.error().in_doubt && call.writes;
      return response;
    }
    if (heard_) heard_(*response);
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

Result<HttpResponse> ApiServer::stream(const ApiCall& call,
                                       const http_client::HttpClient::OnLine& on_line,
                                       std::stop_token stop, Millis silence) {
  auto made = request(call);
  if (!made) return made.error();
  auto response = http_.stream(*made, on_line, std::move(stop), silence);
  if (response && response->status == 401) credentials_.doubt();
  return response;
}

}  // namespace baton::store::kubernetes
