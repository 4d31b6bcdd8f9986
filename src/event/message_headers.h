#pragma once

// How an event travels: its fields as the headers of a broker's message. The names are a contract
// with consumers in any language (docs/events.md), so they never change.
//
//   message             event
//   id                  id
//   exchange            exchange
//   routing_key         routing_key
//   body                payload
//   type                type
//   aggregate           aggregate
//   aggregate-type      aggregate_type; left out if empty, as are the three below
//   correlation-id      correlation_id
//   causation-id        causation_id
//   traceparent         traceparent
//   version             version, in decimal
//   occurred-at         when it was added to the outbox: RFC 3339 in UTC, with milliseconds
//   x-lane              the lane that published it, in decimal
//   x-position          its position in the outbox, in decimal
//
// The headers of the event itself are beside them. One that has a name of this list is not sent:
// what it says would be taken for the field.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "baton/broker.h"
#include "baton/event.h"
#include "baton/export.h"
#include "baton/result.h"

namespace baton::event {

namespace header {
inline constexpr std::string_view type = "type";
inline constexpr std::string_view aggregate = "aggregate";
inline constexpr std::string_view aggregate_type = "aggregate-type";
inline constexpr std::string_view version = "version";
inline constexpr std::string_view correlation_id = "correlation-id";
inline constexpr std::string_view causation_id = "causation-id";
inline constexpr std::string_view traceparent = "traceparent";
inline constexpr std::string_view occurred_at = "occurred-at";
inline constexpr std::string_view lane = "x-lane";
inline constexpr std::string_view position = "x-position";
}  // namespace header

using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

// An event on its way, with what the outbox knows of it.
struct SentEvent {
  Event event;
  int lane = 0;
  std::int64_t position = 0;
  WallTime occurred_at{};
  bool operator==(const SentEvent&) const = default;
};

[[nodiscard]] BATON_EXPORT Message to_message(SentEvent sent);
// The same into a message that was sent before, whose headers lend their memory to the new ones.
BATON_EXPORT void write_message(SentEvent sent, Message& message);

// `bad_request` with what is wrong: no usable id, no type or aggregate, a number that is none, or
// what check_event refuses. A message of another sender may lack the lane, the position and
// occurred-at: they are 0 then. Ids of the context that are malformed are left out.
[[nodiscard]] BATON_EXPORT Result<SentEvent> from_message(const Message& message);

// "2026-11-18T20:14:03.271Z".
[[nodiscard]] BATON_EXPORT std::string print_time(WallTime time);
[[nodiscard]] BATON_EXPORT Result<WallTime> parse_time(std::string_view text);

}  // namespace baton::event
