#pragma once

#include "baton/store.h"

namespace baton::runtime {

// Requests that only end something, or only look: a store need not wait for its disk to answer
// them, and shall not have to because of their company.
[[nodiscard]] inline bool only_ends_something(const Request& request) {
  switch (request.verb) {
    case Verb::release: return request.change.empty();
    case Verb::cancel: return request.tombstone_ttl <= Millis(0);
    case Verb::get: return true;
    default: return false;
  }
}

}  // namespace baton::runtime
