#pragma once

// The promises that every state and every step of a world must keep. Each check gives the first
// broken promise in words, or nothing.

#include "core/lock_table.h"
#include "explore/world.h"

namespace baton::explore {

// Holds in every state: exclusion among those who believe, tokens that tell the late from the
// living, an end to everything that the store keeps, and no conversions that wait for each other.
[[nodiscard]] std::string broken_in_state(const World& world, const Setting& setting);

// Holds for every answer of the store: tokens grow in the order of grants, nobody is granted past
// an earlier waiter, waiters keep their places, what has ended stays so, and the promoted are
// woken. `after` is not normalised yet; learns its new tokens.
[[nodiscard]] std::string broken_by_answer(const World& before, World& after,
                                           const MessageCell& message, const core::Effects& effects,
                                           const Setting& setting);

}  // namespace baton::explore
