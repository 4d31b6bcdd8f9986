#pragma once

// Breadth-first search through all states of a world. A broken promise is reported with the
// shortest way to it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "explore/world.h"

namespace baton::explore {

struct Report {
  std::string title;
  std::size_t states = 0;
  std::size_t walks = 0;  // only of wander: how often everything came to its end
  std::size_t transitions = 0;
  std::size_t depth = 0;      // of the deepest state seen; of wander: the longest walk
  std::size_t fair_runs = 0;  // states from which a fair schedule was run to its end
  bool complete = false;      // false: stopped at the bound on states, or at a broken promise
  double seconds = 0;
  std::string problem;  // the broken promise, if any
  std::string trace;    // and how to get there
};

// Visits at most setting.max_states states.
[[nodiscard]] Report explore(const Setting& setting);

// Walks at random for setting.max_states steps, from one end of everything to the next: for worlds
// that are too large to be explored.
[[nodiscard]] Report wander(const Setting& setting, std::uint64_t seed);

[[nodiscard]] std::string summary(const Report& report);

// The worlds that are explored, smallest first. All use clocks that are within the margin of
// core/trust.h.
[[nodiscard]] std::vector<Setting> all_settings();

// Everything at once, for walks: three clients, two names, conversions, unsteady clocks.
[[nodiscard]] Setting large_world();

// A clock that is slower than the margin allows: the exploration must notice.
[[nodiscard]] Setting clocks_beyond_the_margin();

}  // namespace baton::explore
