#pragma once

#include <string>

#include "apps/documents/operate/places.h"

namespace baton::documents {

// documents audit verify: computes the hash chain anew. `known_head` is SEQUENCE:HASH as an earlier
// run has printed it; empty: none. Exit code 1 if something was tampered with.
[[nodiscard]] Result<int> verify_audit(const Places& places, const std::string& known_head,
                                       bool json);

}  // namespace baton::documents
