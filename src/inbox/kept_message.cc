#include "inbox/kept_message.h"

#include "core/sha256.h"
#include "core/utf8.h"

namespace baton::inbox {
namespace {

// A UUID of version 8 (RFC 9562): of our own making.
std::string uuid_of(const Message& message) {
  std::string whole;
  const auto add = [&](std::string_view part) {
    whole += std::to_string(part.size()) + ":";
    whole += part;
  };
  for (const auto& part : {message.exchange, message.routing_key, message.id, message.body}) {
    add(part);
  }
  for (const auto& [name, value] : message.headers) {
    add(name);
    add(value);
  }
  const std::string hash = core::sha256(whole);
  return hash.substr(0, 8) + "-" + hash.substr(8, 4) + "-8" + hash.substr(13, 3) + "-a" +
         hash.substr(17, 3) + "-" + hash.substr(20, 12);
}

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    const auto point = core::next_code_point(text, at);
    if (!point) at = begin + 1;
    const bool good = point && *point >= 0x20 && (*point < 0x7F || *point > 0x9F);
    const auto piece = good ? text.substr(begin, at - begin) : std::string_view(" ");
    if (out.size() + piece.size() > max_bytes) break;
    out += piece;
  }
  return out;
}

KeptMessage keep(const event::SentEvent& sent, const Message& message) {
  return {.event_id = sent.event.id,
          .event = sent.event,
          .lane = sent.lane,
          .position = sent.position,
          .message = message};
}

KeptMessage keep_poison(const Message& message) {
  const auto header = [&](std::string_view name) {
    const auto found = message.headers.find(std::string(name));
    return found == message.headers.end() ? std::string() : printable(found->second, kMaxEventText);
  };
  KeptMessage kept{.event_id = is_event_id(message.id) ? message.id : uuid_of(message),
                   .message = message,
                   .raw = true};
  Message& safe = kept.message;
  safe.exchange = printable(safe.exchange, kMaxEventText);
  safe.routing_key = printable(safe.routing_key, kMaxEventText);
  safe.id = printable(safe.id, kMaxEventText);
  safe.content_type = printable(safe.content_type, kMaxEventText);
  kept.event = {.id = kept.event_id,
                .type = header(event::header::type),
                .aggregate = header(event::header::aggregate),
                .aggregate_type = header(event::header::aggregate_type),
                .exchange = safe.exchange,
                .routing_key = safe.routing_key,
                .payload = ""};
  return kept;
}

}  // namespace baton::inbox
