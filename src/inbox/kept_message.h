#pragma once

// A message as inbox_events keeps it.

#include <cstdint>
#include <string>
#include <string_view>

#include "baton/broker.h"
#include "event/message_headers.h"

namespace baton::inbox {

struct KeptMessage {
  std::string event_id;
  Event event;  // of a message that is none: what could be read
  int lane = 0;
  std::int64_t position = 0;
  Message message;
  bool raw = false;  // the body goes to the column `raw`, not to `payload`
};

[[nodiscard]] KeptMessage keep(const event::SentEvent& sent, const Message& message);

// A message that is no event. Without an id that can be used its key is made from a hash of all of
// it, so that it is recognised when it comes again.
[[nodiscard]] BATON_EXPORT KeptMessage keep_poison(const Message& message);

// Valid UTF-8 without control characters, of at most so many bytes.
[[nodiscard]] BATON_EXPORT std::string printable(std::string_view text, std::size_t max_bytes);

inline constexpr std::size_t kMaxErrorText = 2'000;  // bytes of last_error

// last_error of a row that is HELD.
inline constexpr const char* kHeldBack = "an earlier event of its aggregate is in trouble";

}  // namespace baton::inbox
