#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/event_log.h"
#include "outbox/complete_event.h"

namespace baton::eventlog {

// The events of an append, checked, with what their writer left out. Not movable: the complete
// events point to the others.
struct CompleteAppend {
  std::vector<Event> events;  // with their aggregate
  std::vector<outbox::CompleteEvent> complete;

  CompleteAppend() = default;
  CompleteAppend(const CompleteAppend&) = delete;
  CompleteAppend& operator=(const CompleteAppend&) = delete;
  [[nodiscard]] Result<void> fill(std::string_view stream, std::span<const Event> from);
};

[[nodiscard]] Error version_conflict(std::string_view stream, std::int64_t version,
                                     std::int64_t expected);

[[nodiscard]] Result<void> check_limit(const ReadStream& what);

}  // namespace baton::eventlog
