#include "store/etcd/gateway.h"

#include <algorithm>
#include <optional>

#include "store/etcd/etcd_error.h"
#include "store/etcd/wire.h"

namespace baton::store::etcd {
namespace {

constexpr Millis kTokenLimit{5000};

Error not_etcd(bool writes) {
  return {.code = Code::unavailable,
          .message = "etcd: an answer that is not etcd's",
          .retryable = true,
          .in_doubt = writes};
}

}  // namespace

struct Gateway::Said {
  wire::Problem problem;
};

Gateway::Gateway(Settings settings)
    : settings_(std::move(settings)), http_({.tls = settings_.tls}) {}

void Gateway::leave(std::size_t endpoint) {
  std::size_t expected = endpoint;
  current_.compare_exchange_strong(expected, (endpoint + 1) % settings_.endpoints.size());
}

Result<std::string> Gateway::token(const std::string& endpoint, Deadline deadline) {
  if (settings_.user.empty()) return std::string();
  {
    const std::lock_guard lock(mutex_);
    if (!token_.empty()) return token_;
  }
  const auto answer = http_.send({.method = "POST",
                                  .url = endpoint + "/v3/auth/authenticate",
                                  .headers = {{"Content-Type", "application/json"}},
                                  .body = wire::authenticate(settings_.user, settings_.password)},
                                 std::min(deadline, BootClock::now() + kTokenLimit));
  if (!answer) {
    Error error = answer.error();
    error.in_doubt = false;  // logging in changes nothing
    return error;
  }
  if (!answer->ok()) {
    Error error = error_for(wire::problem(answer->body), answer->status, false);
    error.message += " (" + endpoint + ", user " + settings_.user + ")";
    return error;
  }
  auto token = wire::token_answer(answer->body);
  if (!token) return not_etcd(false);
  const std::lock_guard lock(mutex_);
  token_ = *token;
  return std::move(*token);
}

void Gateway::forget_token(const std::string& used) {
  const std::lock_guard lock(mutex_);
  if (token_ == used) token_.clear();
}

Result<http_client::HttpRequest> Gateway::request_to(const std::string& endpoint,
                                                     const std::string& path,
                                                     const std::string& body, Deadline deadline) {
  auto key = token(endpoint, deadline);
  if (!key) return key.error();
  http_client::HttpRequest request{.method = "POST",
                                   .url = endpoint + path,
                                   .headers = {{"Content-Type", "application/json"}},
                                   .body = body};
  if (!key->empty()) request.headers.emplace_back("Authorization", *key);
  return request;
}

// Tries the next endpoint if the request certainly had no effect, or if it may take effect twice.
Result<std::string> Gateway::call(const std::string& path, const std::string& body, Kind kind,
                                  Deadline deadline, Said* said) {
  const bool writes = kind == Kind::writes;
  const std::size_t count = settings_.endpoints.size();
  Error last{.code = Code::unavailable, .message = "etcd: no answer", .retryable = true};
  bool logged_in_again = false;
  for (std::size_t attempt = 0; attempt < count; ++attempt) {
    const std::size_t endpoint = current_.load() % count;
    // A member that hangs must leave time for another one.
    const auto left = deadline - BootClock::now();
    const Deadline limit = writes || attempt + 1 == count ? deadline : deadline - left / 2;
    auto request = request_to(settings_.endpoints[endpoint], path, body, limit);
    if (!request) {
      last = request.error();
      if (!last.retryable) return last;
      leave(endpoint);
      continue;
    }
    request->once = writes;
    auto answer = http_.send(*request, limit);
    if (!answer) {
      last = answer.error();
      leave(endpoint);
      if (writes && last.in_doubt) return last;
      last.in_doubt = false;
      continue;
    }
    if (answer->ok()) return std::move(answer->body);
    const wire::Problem problem = wire::problem(answer->body);
    if (must_log_in(problem) && !settings_.user.empty() && !logged_in_again) {
      forget_token(request->headers.back().second);
      logged_in_again = true;
      --attempt;
      continue;
    }
    if (said != nullptr) said->problem = problem;
    last = error_for(problem, answer->status, writes);
    if (!last.retryable) return last;
    leave(endpoint);
    if (last.in_doubt) return last;
  }
  return last;
}

Result<TxnAnswer> Gateway::txn(const Txn& txn, Deadline deadline) {
  const bool writes = std::any_of(txn.then.begin(), txn.then.end(),
                                  [](const Op& op) { return op.what != Op::What::range; });
  Said said;
  auto answer =
      call("/v3/kv/txn", wire::txn(txn), writes ? Kind::writes : Kind::repeatable, deadline, &said);
  if (!answer) {
    const auto refused = [&](TxnAnswer::Refused why) {
      TxnAnswer nothing;
      nothing.refused = why;
      return nothing;
    };
    if (is_lease_gone(said.problem)) return refused(TxnAnswer::Refused::lease_not_found);
    if (is_too_large(said.problem)) return refused(TxnAnswer::Refused::too_large);
    return answer.error();
  }
  auto read = wire::txn_answer(*answer);
  if (!read) return not_etcd(writes);
  return std::move(*read);
}

Result<Gateway::RangeAnswer> Gateway::range(const std::string& key, const std::string& end,
                                            std::size_t limit, Deadline deadline) {
  auto answer = call("/v3/kv/range", wire::range(key, end, limit), Kind::repeatable, deadline);
  if (!answer) return answer.error();
  auto read = wire::range_answer(*answer);
  if (!read) return not_etcd(false);
  return std::move(*read);
}

// A lease that nobody knows of ends by itself: asking again harms nobody.
Result<Gateway::LeaseAnswer> Gateway::grant_lease(std::chrono::seconds ttl, Deadline deadline) {
  auto answer = call("/v3/lease/grant", wire::lease_grant(ttl), Kind::repeatable, deadline);
  if (!answer) return answer.error();
  const auto lease = wire::lease_answer(*answer);
  if (!lease || lease->id == 0 || lease->ttl <= std::chrono::seconds{0}) return not_etcd(false);
  return *lease;
}

Result<Gateway::LeaseAnswer> Gateway::keep_alive(LeaseId id, Deadline deadline) {
  Said said;
  auto answer = call("/v3/lease/keepalive", wire::lease(id), Kind::repeatable, deadline, &said);
  if (!answer) {
    if (is_lease_gone(said.problem)) return LeaseAnswer{id, std::chrono::seconds{0}};
    return answer.error();
  }
  const auto lease = wire::lease_answer(*answer);
  if (!lease || lease->id != id) return not_etcd(false);
  return *lease;
}

Result<void> Gateway::revoke_lease(LeaseId id, Deadline deadline) {
  auto answer = call("/v3/lease/revoke", wire::lease(id), Kind::repeatable, deadline);
  if (!answer) return answer.error();
  return {};
}

Result<void> Gateway::watch(const std::vector<std::string>& keys,
                            const std::function<void()>& on_ready, const OnPut& on_put,
                            std::stop_token stop) {
  const std::size_t endpoint = current_.load() % settings_.endpoints.size();
  auto request = request_to(settings_.endpoints[endpoint], "/v3/watch", wire::watch(keys),
                            BootClock::now() + settings_.apply_limit);
  if (!request) {
    leave(endpoint);
    return request.error();
  }
  std::size_t created = 0;
  std::string ended;
  const auto on_line = [&](std::string_view line) {
    if (line.empty()) return true;
    const auto event = wire::watch_event(line);
    if (!event) return ended = "an answer that is not etcd's", false;
    if (!event->ended.empty()) return ended = event->ended, false;
    if (event->created && ++created == keys.size()) on_ready();
    for (const KeyValue& put : event->puts) on_put(put);
    return true;
  };
  auto answer = http_.stream(*request, on_line, std::move(stop));
  if (!answer) {
    leave(endpoint);
    return answer.error();
  }
  if (answer->ok() && ended.empty()) return {};
  const wire::Problem problem =
      answer->ok() ? wire::Problem{0, ended} : wire::problem(answer->body);
  if (must_log_in(problem) && !settings_.user.empty()) {
    forget_token(request->headers.back().second);
  }
  return error_for(problem, answer->status, false);
}

Result<Gateway::Health> Gateway::health(Deadline deadline) {
  auto members = call("/v3/cluster/member/list", "{}", Kind::repeatable, deadline);
  if (!members) return members.error();
  auto alarms = call("/v3/maintenance/alarm", R"({"action":"GET"})", Kind::repeatable, deadline);
  if (!alarms) return alarms.error();
  return Health{.members = wire::member_count(*members),
                .full = alarms->find("NOSPACE") != std::string::npos,
                .corrupt = alarms->find("CORRUPT") != std::string::npos};
}

Result<std::string> Gateway::version(Deadline deadline) {
  auto status = call("/v3/maintenance/status", "{}", Kind::repeatable, deadline);
  if (!status) return status.error();
  return wire::field(*status, "version");
}

Result<std::vector<std::pair<std::string, std::string>>> Gateway::describe(Deadline deadline) {
  auto status = call("/v3/maintenance/status", "{}", Kind::repeatable, deadline);
  if (!status) return status.error();
  auto members = call("/v3/cluster/member/list", "{}", Kind::repeatable, deadline);
  if (!members) return members.error();
  return std::vector<std::pair<std::string, std::string>>{
      {"server", "etcd " + wire::field(*status, "version")},
      {"members", std::to_string(wire::member_count(*members))},
      {"database bytes", wire::field(*status, "dbSize")}};
}

}  // namespace baton::store::etcd
