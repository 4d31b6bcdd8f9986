#pragma once

#include <string>

#include "baton/outbox.h"

namespace baton::outbox {

// An event that was checked, with what its writer left out. The rest is in the event itself, which
// must outlive it.
struct CompleteEvent {
  const Event* event;
  std::string id;
  std::string exchange;
  std::string routing_key;
  std::string headers;  // JSON
};

[[nodiscard]] BATON_EXPORT Result<CompleteEvent> complete(const Event& event,
                                                          const OutboxOptions& options);
// For an outbox: `bad_request` also without an exchange.
[[nodiscard]] BATON_EXPORT Result<CompleteEvent> complete_to_publish(const Event& event,
                                                                     const OutboxOptions& options);

}  // namespace baton::outbox
