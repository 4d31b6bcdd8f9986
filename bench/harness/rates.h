#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/report.h"
#include "harness/slices.h"

namespace baton::bench {

// Pairs of acquire and release a second of ours, at least `target` times those of the floor if
// there is one.
[[nodiscard]] Figure compare_rates(const SliceOptions& options, std::string row, std::string what,
                                   std::optional<double> target, const Load& ours,
                                   const Load& floor);

// Microseconds of processor time that a pair takes, in this process and in the server's: other work
// on the machine changes it far less than it changes the pairs a second.
struct Worker {
  const Load& load;
  std::string servers;  // processes, their ids separated by commas
};
[[nodiscard]] Figure compare_processor_time(const SliceOptions& options, std::string row,
                                            std::string what, const Worker& ours,
                                            const Worker& floor);

}  // namespace baton::bench
