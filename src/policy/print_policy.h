#pragma once

#include <string>

#include "baton/policy.h"

namespace baton::policy {

// The YAML that parse_policy would read as this policy (but for its version and draining, which
// belong to the store).
[[nodiscard]] BATON_EXPORT std::string print_policy(const Policy& policy);

}  // namespace baton::policy
