#pragma once

#include <string>
#include <string_view>

#include "baton/export.h"

namespace baton::core {

// SHA-256 in hexadecimal digits.
[[nodiscard]] BATON_EXPORT std::string sha256(std::string_view bytes);

}  // namespace baton::core
