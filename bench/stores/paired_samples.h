#pragma once

#include <functional>
#include <string>
#include <vector>

#include "stores/rows.h"

namespace baton::bench {

// Of CLOCK_BOOTTIME.
[[nodiscard]] double milliseconds_now();

// How long each of both took, in milliseconds, in turns.
struct PairedSamples {
  std::vector<double> ours;
  std::vector<double> floor;
};

// One a slice, after a few that are not counted: connections, leases.
[[nodiscard]] std::vector<PairedSamples> sample_in_turns(const RowOptions& options,
                                                         const std::function<double()>& ours,
                                                         const std::function<double()>& floor);

// The share-th percentile of each slice against that of its floor; at most `target` times.
[[nodiscard]] Figure compare(std::string row, std::string what, double share, double target,
                             const std::vector<PairedSamples>& slices);

}  // namespace baton::bench
