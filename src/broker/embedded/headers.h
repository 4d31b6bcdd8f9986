#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace baton::broker {

// Names and values, each behind its length in four bytes, lowest first: any byte may be in them.
[[nodiscard]] std::string encode_headers(const std::map<std::string, std::string>& headers);

// Nothing if the bytes are damaged.
[[nodiscard]] std::optional<std::map<std::string, std::string>> decode_headers(
    std::string_view bytes);

}  // namespace baton::broker
