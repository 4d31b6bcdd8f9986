#pragma once

// What a service tells others: something that has happened to one of its aggregates. An event is
// written to the outbox in the transaction that made it true (baton/outbox.h), published by a relay
// and handled by consumers.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "baton/export.h"
#include "baton/result.h"

namespace baton {

inline constexpr std::size_t kMaxEventPayload = 1 << 20;   // bytes
inline constexpr std::size_t kMaxEventText = 255;          // bytes: types, aggregates, routing keys
inline constexpr std::size_t kMaxContextId = 128;          // bytes: correlation and causation
inline constexpr std::size_t kMaxEventHeaders = 16 << 10;  // bytes, names and values together

struct Event {
  std::string id;    // a UUID; empty: Outbox::add makes one
  std::string type;  // DocumentUploaded

  // Events of one aggregate are published in the order in which their transactions became visible.
  // Of transactions that overlap either may come first, unless each locks the row of the aggregate
  // before it adds the event.
  std::string aggregate;
  std::string aggregate_type;

  std::string exchange;     // empty: that of the outbox
  std::string routing_key;  // empty: made from the type, document.uploaded

  std::string payload = "{}";  // JSON text
  std::map<std::string, std::string> headers;

  // Which request this belongs to, which event or command caused it, and its W3C trace context.
  std::string correlation_id;
  std::string causation_id;
  std::string traceparent;

  std::int32_t version = 1;  // of the payload's schema
  bool operator==(const Event&) const = default;
};

// A new UUID of version 7: ids made later, by one process, sort behind those made before.
[[nodiscard]] BATON_EXPORT std::string make_event_id();
[[nodiscard]] BATON_EXPORT bool is_event_id(std::string_view text);  // any UUID, in lower case

// `bad_request` with what is wrong: no type or aggregate, too long, no JSON, nested deeper than 64
// levels, a control character, an id that is no UUID. Ids from outside must have been made usable.
[[nodiscard]] BATON_EXPORT Result<void> check_event(const Event& event);

// DocumentUploaded: document.uploaded
[[nodiscard]] BATON_EXPORT std::string routing_key_of(std::string_view type);

// A correlation or causation id from outside as it is, or a new one if it is empty, longer than
// kMaxContextId or has other than visible ASCII characters: such ids are never echoed.
[[nodiscard]] BATON_EXPORT std::string usable_context_id(std::string_view from_outside);

// A traceparent from outside as it is, or nothing if it is malformed.
[[nodiscard]] BATON_EXPORT std::string usable_traceparent(std::string_view from_outside);

}  // namespace baton
