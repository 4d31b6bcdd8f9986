#include <charconv>

#include "json/json.h"
#include "store/kubernetes/lease_api.h"

namespace baton::store::kubernetes {
namespace {

using nlohmann::json;

constexpr int kWatchSeconds = 300;
// The server ends the stream itself after that; a stream that is quiet for longer is dead.
constexpr Millis kSilence{(kWatchSeconds + 30) * 1000};
constexpr int kGone = 410;

// The text of the first string behind `name`. Inside another string a quote would be escaped, so
// this finds only real fields; and what we look for has no escapes itself.
std::string_view field(std::string_view line, std::string_view name) {
  const auto begin = line.find(name);
  if (begin == std::string_view::npos) return {};
  const std::string_view rest = line.substr(begin + name.size());
  return rest.substr(0, rest.find('"'));
}

std::uint64_t number(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

WatchEvent parse_error(std::string_view line) {
  WatchEvent event;
  const json message = parse_json(line);
  const auto code = "/object/code"_json_pointer;
  if (message.is_object() && message.contains(code) && message[code] == kGone) {
    event.kind = WatchEvent::Kind::gone;
  }
  return event;
}

// Everybody who waits in a namespace hears of every change in it, so this must be cheap: no more is
// read than what tells whether it matters.
WatchEvent parse_event(std::string_view line) {
  const std::string_view type = field(line, R"("type":")");
  if (type == "ERROR") return parse_error(line);
  WatchEvent event;
  event.version = number(field(line, R"("resourceVersion":")"));
  if (event.version == 0) return event;
  event.name = field(line, R"("name":")");
  event.wake = field(line, R"("baton/wake":")");
  event.text = line;
  if (type == "BOOKMARK") event.kind = WatchEvent::Kind::bookmark;
  if (type == "DELETED") event.kind = WatchEvent::Kind::deleted;
  if (type == "ADDED" || type == "MODIFIED") event.kind = WatchEvent::Kind::changed;
  return event;
}

}  // namespace

Result<void> LeaseApi::watch(std::uint64_t version, const OnEvent& on_event, std::stop_token stop) {
  ApiCall call{.verb = "watch",
               .method = "GET",
               .path = leases_ + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
                       std::to_string(kWatchSeconds) +
                       "&labelSelector=app.kubernetes.io%2Fmanaged-by%3Dbaton"};
  if (version != 0) call.path += "&resourceVersion=" + std::to_string(version);
  const auto response = server_.stream(
      call,
      [&](std::string_view line) {
        if (!line.empty()) on_event(parse_event(line));
        return !stop.stop_requested();
      },
      stop, kSilence);
  if (!response) return response.error();
  if (response->ok()) return {};
  if (response->status == kGone) {
    WatchEvent gone;
    gone.kind = WatchEvent::Kind::gone;
    on_event(gone);
    return {};
  }
  return server_.refusal(call, *response);
}

}  // namespace baton::store::kubernetes
