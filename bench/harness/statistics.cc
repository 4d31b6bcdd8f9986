#include "harness/statistics.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace baton::bench {

double percentile(std::vector<double> samples, double share) {
  if (samples.empty()) throw std::runtime_error("nothing was measured");
  const double rank = std::ceil(share * static_cast<double>(samples.size()));
  const auto at = static_cast<std::ptrdiff_t>(std::max(rank, 1.0)) - 1;
  std::nth_element(samples.begin(), samples.begin() + at, samples.end());
  return samples[static_cast<std::size_t>(at)];
}

double median(std::vector<double> samples) {
  if (samples.size() % 2 == 1) return percentile(std::move(samples), 0.5);
  const double low = percentile(samples, 0.5);
  const double above = percentile(samples, 0.5 + 1.0 / static_cast<double>(samples.size()));
  return (low + above) / 2;
}

std::vector<double> ratios(const std::vector<double>& ours, const std::vector<double>& floor) {
  std::vector<double> all;
  for (std::size_t i = 0; i < std::min(ours.size(), floor.size()); ++i) {
    all.push_back(ours[i] / floor[i]);
  }
  return all;
}

}  // namespace baton::bench
