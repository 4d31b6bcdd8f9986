#pragma once

#include <cstdint>

namespace baton::schedule {

// Whose turn a fire is: 0 goes first. The turn moves on by one node with every fire, so the work
// rotates; `offset` says where it begins, so that jobs that go in step are on different nodes.
// Those behind the first stand in the order of the nodes in one round and in the reverse order in
// the next: the turns of a node that is not there fall to both of its neighbours alike.
[[nodiscard]] constexpr std::uint64_t rank(std::uint64_t index, std::uint64_t nodes,
                                           std::uint64_t fire, std::uint64_t offset) {
  if (nodes == 0) return 0;
  if (index >= nodes) return nodes;
  const std::uint64_t turn = fire + offset % nodes;
  const std::uint64_t first = turn % nodes;
  const bool reverse = (turn / nodes) % 2 == 1;
  return reverse ? (first + nodes - index) % nodes : (index + nodes - first) % nodes;
}

}  // namespace baton::schedule
