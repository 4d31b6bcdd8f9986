#include <nlohmann/json.hpp>

#include "store/kubernetes/lease_api.h"

namespace baton::store::kubernetes {
namespace {

using nlohmann::json;

constexpr int kWatchSeconds = 300;
// The server ends the stream itself after that; a stream that is quiet for longer is dead.
constexpr Millis kSilence{(kWatchSeconds + 30) * 1000};
constexpr int kGone = 410;

std::uint64_t number(const json& object, const char* pointer) {
  const auto text = object.value(json::json_pointer(pointer), std::string());
  return std::strtoull(text.c_str(), nullptr, 10);
}

WatchEvent parse_event(std::string_view line) {
  WatchEvent event;
  const json message = json::parse(line, nullptr, false);
  if (!message.is_object() || !message.contains("object")) return event;
  const json& object = message["object"];
  const std::string type = message.value("type", std::string());
  if (type == "ERROR") {
    if (object.is_object() && object.value("code", 0) == kGone) event.kind = WatchEvent::Kind::gone;
    return event;
  }
  event.version = number(object, "/metadata/resourceVersion");
  if (type == "BOOKMARK") {
    event.kind = WatchEvent::Kind::bookmark;
    return event;
  }
  auto lease = parse_lease(object.dump());
  if (!lease) return event;
  event.lease = std::move(*lease);
  event.kind = type == "DELETED" ? WatchEvent::Kind::deleted : WatchEvent::Kind::changed;
  return event;
}

}  // namespace

Result<void> LeaseApi::watch(std::uint64_t version, const OnEvent& on_event, std::stop_token stop) {
  Call call{.verb = "watch",
            .method = "GET",
            .path = leases_ + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
                    std::to_string(kWatchSeconds) +
                    "&labelSelector=app.kubernetes.io%2Fmanaged-by%3Dbaton"};
  if (version != 0) call.path += "&resourceVersion=" + std::to_string(version);
  auto made = request(call);
  if (!made) return made.error();
  const auto response = http_.stream(
      *made,
      [&](std::string_view line) {
        if (!line.empty()) on_event(parse_event(line));
        return !stop.stop_requested();
      },
      stop, kSilence);
  if (!response) return response.error();
  if (response->ok()) return {};
  if (response->status == kGone) {
    on_event({.kind = WatchEvent::Kind::gone, .version = 0, .lease = {}});
    return {};
  }
  if (response->status == 401) credentials_.doubt();
  return refusal(call, *response);
}

}  // namespace baton::store::kubernetes
