#pragma once

// A name's state as one JSON document, for stores that keep a document a name.

#include <string>
#include <string_view>

#include "core/lock_table.h"

namespace baton::core {

[[nodiscard]] std::string to_document(const NameState& state);

// Rejects everything that to_document does not write: a damaged document must not read as a free
// lock.
[[nodiscard]] Result<NameState> from_document(std::string_view text);

}  // namespace baton::core
