#pragma once

#include <span>
#include <string>
#include <string_view>

#include "baton/export.h"

namespace baton::policy {

// The known word nearest to what was written, if it is near enough to be what was meant; else
// nothing.
[[nodiscard]] BATON_EXPORT std::string nearest(std::string_view written,
                                               std::span<const std::string_view> known);

// "unknown key 'max_ttl'; did you mean 'max-ttl'?", or else the keys there are.
[[nodiscard]] BATON_EXPORT std::string unknown_word(std::string_view what, std::string_view written,
                                                    std::span<const std::string_view> known);

}  // namespace baton::policy
