#include "http/message.h"

#include <arpa/inet.h>

#include <algorithm>
#include <atomic>

#include "json/json.h"

namespace baton::http {
namespace {

// localhost, 127.0.0.0/8 or [::1], with or without a port.
bool is_loopback(std::string_view host) {
  if (const auto colon = host.rfind(':'); colon != std::string_view::npos && !host.ends_with(']')) {
    host = host.substr(0, colon);
  }
  in_addr address{};
  return host == "localhost" || host == "[::1]" ||
         (inet_pton(AF_INET, std::string(host).c_str(), &address) == 1 &&
          ntohl(address.s_addr) >> 24U == IN_LOOPBACKNET);
}

}  // namespace

const std::string* find(const Pairs& pairs, std::string_view name) {
  const auto found = std::find_if(pairs.begin(), pairs.end(),
                                  [&](const auto& pair) { return pair.first == name; });
  return found == pairs.end() ? nullptr : &found->second;
}

std::string_view Request::parameter(std::string_view name) const {
  const std::string* value = find(parameters, name);
  return value == nullptr ? std::string_view{} : *value;
}

std::string_view Request::header(std::string_view name) const {
  const std::string* value = find(headers, name);
  return value == nullptr ? std::string_view{} : *value;
}

bool is_cross_origin(const Request& request, bool on_loopback) {
  const std::string_view origin = request.header("origin");
  if (origin.empty()) return false;  // no browser
  const std::string_view host = request.header("host");
  const auto scheme = origin.find("://");
  if (scheme == std::string_view::npos || origin.substr(scheme + 3) != host) return true;
  return on_loopback && !is_loopback(host);
}

Response error_response(int status, std::string_view code, std::string_view message) {
  const nlohmann::json body = {{"error", {{"code", code}, {"message", message}}}};
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

struct Reply::Once {
  Once(Send with, Refusal how) : send(std::move(with)), refusal(std::move(how)) {}
  ~Once() {
    if (!sent) send(refusal(500, "internal", "the request was dropped"));
  }
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;

  Send send;
  Refusal refusal;
  std::atomic<bool> sent{false};
};

Reply::Reply(Send send, Refusal refusal)
    : once_(std::make_shared<Once>(std::move(send), std::move(refusal))) {}

void Reply::operator()(Response response) const {
  if (!once_->sent.exchange(true)) once_->send(std::move(response));
}

}  // namespace baton::http
