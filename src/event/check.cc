// What an event may be. Its texts go into tables, AMQP frames, logs and consoles.

#include <string>

#include "baton/event.h"
#include "core/bad_request.h"
#include "core/utf8.h"
#include "event/context.h"
#include "json/json.h"

namespace baton {
namespace {

enum class Controls : std::uint8_t { refused, allowed };

// Nothing if the text is well-formed, else what is wrong. The text itself is not repeated: it may
// be anything.
std::string wrong_text(std::string_view text, Controls controls) {
  for (std::size_t i = 0; i < text.size();) {
    const auto point = core::next_code_point(text, i);
    if (!point) return "is not UTF-8";
    if (*point == 0) return "has a NUL byte";
    const bool control = *point < 0x20 || (*point >= 0x7f && *point < 0xa0);
    if (control && controls == Controls::refused) return "has a control character";
  }
  return {};
}

Result<void> check_text(const std::string& what, std::string_view text) {
  if (text.size() > kMaxEventText) {
    return bad_request(what + " has " + std::to_string(text.size()) + " bytes, at most " +
                       std::to_string(kMaxEventText) + " are allowed");
  }
  if (const auto wrong = wrong_text(text, Controls::refused); !wrong.empty()) {
    return bad_request(what + " " + wrong);
  }
  return {};
}

Result<void> check_texts(const Event& event) {
  if (event.type.empty()) return bad_request("an event needs a type, as DocumentUploaded");
  if (event.aggregate.empty()) {
    return bad_request("an event needs an aggregate: what it has happened to");
  }
  for (const auto& [what, text] :
       {std::pair("the type of an event", &event.type),
        std::pair("the aggregate of an event", &event.aggregate),
        std::pair("the aggregate type of an event", &event.aggregate_type),
        std::pair("the exchange of an event", &event.exchange),
        std::pair("the routing key of an event", &event.routing_key)}) {
    if (auto ok = check_text(what, *text); !ok) return ok;
  }
  if (!event.routing_key.empty()) return {};
  const std::string key = routing_key_of(event.type);
  if (key.empty()) return bad_request("no routing key can be made from the type of the event");
  return check_text("the routing key made from the type of an event", key);
}

Result<void> check_payload(std::string_view payload) {
  if (payload.size() > kMaxEventPayload) {
    return bad_request("the payload of an event has " + std::to_string(payload.size()) +
                       " bytes, at most " + std::to_string(kMaxEventPayload) + " are allowed");
  }
  if (!is_shallow_json(payload)) {
    return bad_request("the payload of an event is nested deeper than " +
                       std::to_string(kMaxJsonDepth) + " levels");
  }
  // The parser skips a byte order mark, which other readers need not do, and ends at a NUL byte.
  if (payload.starts_with("\xef\xbb\xbf") || payload.find('\0') != payload.npos ||
      !nlohmann::json::accept(payload.data(), payload.data() + payload.size())) {
    return bad_request("the payload of an event is not JSON in UTF-8");
  }
  return {};
}

Result<void> check_headers(const Event& event) {
  std::size_t bytes = 0;
  for (const auto& [name, value] : event.headers) {
    bytes += name.size() + value.size();
    if (name.empty()) return bad_request("a header of an event has no name");
    if (auto ok = check_text("the name of a header", name); !ok) return ok;
    if (const auto wrong = wrong_text(value, Controls::allowed); !wrong.empty()) {
      return bad_request("the header " + name + " " + wrong);
    }
    // RabbitMQ takes them for further routing keys, and closes the channel if they are text.
    if (name == "CC" || name == "BCC") {
      return bad_request("the header " + name + " has a meaning of its own to RabbitMQ");
    }
  }
  if (bytes > kMaxEventHeaders) {
    return bad_request("the headers of an event have " + std::to_string(bytes) +
                       " bytes, at most " + std::to_string(kMaxEventHeaders) + " are allowed");
  }
  return {};
}

Result<void> check_context(const Event& event) {
  for (const auto& [what, id] : {std::pair("correlation", &event.correlation_id),
                                 std::pair("causation", &event.causation_id)}) {
    if (event::is_context_id(*id)) continue;
    return bad_request(std::string("a ") + what + " id has at most " +
                       std::to_string(kMaxContextId) +
                       " visible ASCII characters; see usable_context_id");
  }
  if (!event.traceparent.empty() && !event::is_traceparent(event.traceparent)) {
    return bad_request("the traceparent of an event is malformed; see usable_traceparent");
  }
  return {};
}

}  // namespace

Result<void> check_event(const Event& event) {
  if (!event.id.empty() && !is_event_id(event.id)) {
    return bad_request("the id of an event must be a UUID in lower case");
  }
  if (event.version < 1) return bad_request("the version of an event counts from 1");
  if (auto ok = check_texts(event); !ok) return ok;
  if (auto ok = check_payload(event.payload); !ok) return ok;
  if (auto ok = check_headers(event); !ok) return ok;
  return check_context(event);
}

}  // namespace baton
