#pragma once

#include "baton/store.h"

namespace baton::runtime {

// Whether a request only ends something, or only reads. A store can answer such requests without
// a disk flush, so they are not put into one batch with requests that need one.
[[nodiscard]] inline bool only_ends_something(const Request& request) {
  switch (request.verb) {
    case Verb::release: return request.change.empty();
    case Verb::cancel: return request.tombstone_ttl <= Millis(0);
    case Verb::get: return true;
    default: return false;
  }
}

}  // namespace baton::runtime
