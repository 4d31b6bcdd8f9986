#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton::election {

// A request to the leader is sent as the reason of a break: every store has it, and people read it
// in `baton lock show`. A leader that finds another reason just ends its term.
[[nodiscard]] std::string resign_order(const std::string& why);
[[nodiscard]] std::string transfer_order(const std::string& node);

// The node that a reason names as the next leader.
[[nodiscard]] std::optional<std::string> successor_in(std::string_view reason);

}  // namespace baton::election
