#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "baton/node.h"

namespace baton::node {

// How long a node that went without leaving is still shown.
inline constexpr std::chrono::seconds kRemembered = std::chrono::hours(24);

// What a node is, as the note of its name keeps it.
[[nodiscard]] std::string print_metadata(const Metadata& metadata);
[[nodiscard]] Metadata parse_metadata(std::string_view text);

// Clears the notes of nodes that were last seen more than kRemembered ago. The ordinal of a note
// is the last second in which its node is known to have been there.
void forget_gone(LockClient& locks, const std::string& region, WallTime now);

}  // namespace baton::node
