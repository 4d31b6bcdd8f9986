#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::http_client {

// The standard alphabet, with padding.
[[nodiscard]] std::string to_base64(std::string_view bytes);

// Nothing if the text is not exactly that.
[[nodiscard]] std::optional<std::string> from_base64(std::string_view text);

}  // namespace baton::http_client
