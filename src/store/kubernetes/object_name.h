#pragma once

#include <string>
#include <string_view>

#include "baton/export.h"

namespace baton::store::kubernetes {

// The name of the Lease for a key: "baton-" and 160 bits of its hash. Any key becomes a DNS label,
// and two keys that clash would be noticed, because the object also says which key it is for.
[[nodiscard]] BATON_EXPORT std::string object_name(std::string_view key);

}  // namespace baton::store::kubernetes
