#pragma once

#include <string>

#include "apps/documents/operate/places.h"

namespace baton::documents {

// documents trace: all that the five databases say about one correlation id, by time. Exit code 1
// if there is nothing.
[[nodiscard]] Result<int> trace(const Places& places, const std::string& correlation_id, bool json);

}  // namespace baton::documents
