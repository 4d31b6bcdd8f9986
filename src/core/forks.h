#pragma once

#include <cstdint>

namespace baton::core {

// How many forks there were from the process that first called this down to the current one. An
// object that was made at a lower count belongs to a parent process: its threads do not exist here,
// and its connections are shared with the parent.
[[nodiscard]] std::uint32_t forks();

}  // namespace baton::core
