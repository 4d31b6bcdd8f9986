#pragma once

#include <vector>

namespace baton::bench {

// The value below which this share of the samples lies, by nearest rank. Throws if there are none.
[[nodiscard]] double percentile(std::vector<double> samples, double share);
[[nodiscard]] double median(std::vector<double> samples);

// What each sample is to its partner.
[[nodiscard]] std::vector<double> ratios(const std::vector<double>& ours,
                                         const std::vector<double>& floor);

}  // namespace baton::bench
