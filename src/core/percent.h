#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "baton/export.h"

namespace baton::core {

// Text with %41 for A; nothing if a % is not followed by two hexadecimal digits.
[[nodiscard]] BATON_EXPORT std::optional<std::string> percent_decoded(std::string_view text);

// The other way: only letters, digits and -._~ stand for themselves, as in a URL.
[[nodiscard]] BATON_EXPORT std::string percent_encoded(std::string_view text);

}  // namespace baton::core
