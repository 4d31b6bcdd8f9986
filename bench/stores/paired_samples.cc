#include "stores/paired_samples.h"

#include "baton/clock.h"
#include "harness/slices.h"
#include "harness/statistics.h"

namespace baton::bench {

double milliseconds_now() {
  return static_cast<double>(BootClock::now().time_since_epoch().count()) / 1e6;
}

std::vector<PairedSamples> sample_in_turns(const RowOptions& options,
                                           const std::function<double()>& ours,
                                           const std::function<double()>& floor) {
  for (int i = 0; i < 20; ++i) ours(), floor();
  std::vector<PairedSamples> slices;
  for (int i = 0; i < options.slices; ++i) {
    PairedSamples samples;
    const auto until = BootClock::now() + options.slice;
    do {
      samples.ours.push_back(ours());
      samples.floor.push_back(floor());
    } while (BootClock::now() < until);
    slices.push_back(std::move(samples));
  }
  return slices;
}

Figure compare(std::string row, std::string what, double share, double target,
               const std::vector<PairedSamples>& slices) {
  Figure figure{.row = std::move(row), .what = std::move(what), .unit = "ms"};
  Pairs pairs;
  for (const PairedSamples& samples : slices) {
    pairs.ours.push_back(percentile(samples.ours, share));
    pairs.floor.push_back(percentile(samples.floor, share));
  }
  figure.ours = median(pairs.ours);
  figure.floor = median(pairs.floor);
  figure.score = median(ratios(pairs.ours, pairs.floor));
  figure.bound = Bound::at_most;
  figure.target = target;
  figure.details = {{"slices", static_cast<double>(slices.size())}};
  return figure;
}

}  // namespace baton::bench
