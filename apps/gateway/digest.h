#pragma once

#include <string>
#include <string_view>

namespace baton::gateway {

// SHA-256, 64 hexadecimal digits.
[[nodiscard]] std::string digest(std::string_view text);

}  // namespace baton::gateway
