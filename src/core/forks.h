#pragma once

#include <cstdint>

namespace baton::core {

// How many forks lie between this process and the one that first called it. What was made at
// another count belongs to a parent: its threads are not here, its connections are shared.
[[nodiscard]] std::uint32_t forks();

}  // namespace baton::core
