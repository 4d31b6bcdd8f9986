#include "harness/rates.h"

#include <algorithm>
#include <cstdio>

#include "harness/machine.h"
#include "harness/statistics.h"

namespace baton::bench {

Figure compare_rates(const SliceOptions& options, std::string row, std::string what,
                     std::optional<double> target, const Load& ours, const Load& floor) {
  (void)interleave(options.slice, ours, floor);
  Pairs pairs;
  for (int i = 0; i < options.slices; ++i) {
    const Interleaved both = interleave(options.slice, ours, floor);
    pairs.ours.push_back(both.ours.per_second());
    pairs.floor.push_back(both.floor.per_second());
    std::fprintf(stderr, "  %.4g against %.4g\n", pairs.ours.back(), pairs.floor.back());
  }
  const auto all = ratios(pairs.ours, pairs.floor);
  return {.row = std::move(row),
          .what = std::move(what),
          .unit = "pairs/s",
          .ours = median(pairs.ours),
          .floor = median(pairs.floor),
          .score = median(all),
          .bound = Bound::at_least,
          .target = target,
          .details = {{"lowest_ratio", percentile(all, 0)}, {"highest_ratio", percentile(all, 1)}}};
}

Figure compare_processor_time(const SliceOptions& options, std::string row, std::string what,
                              const Worker& ours, const Worker& floor) {
  const auto cost = [&](const Worker& worker) {
    return [&] {
      const double before = cpu_seconds_of(worker.servers);
      const Slice slice = worker.load(options.slice);
      const double spent = slice.cpu + cpu_seconds_of(worker.servers) - before;
      return spent / static_cast<double>(slice.steps) * 1e6;
    };
  };
  const Pairs pairs = take_turns(std::min(3, options.slices), cost(ours), cost(floor));
  return {.row = std::move(row),
          .what = std::move(what),
          .unit = "us/pair",
          .ours = median(pairs.ours),
          .floor = median(pairs.floor),
          .score = median(ratios(pairs.ours, pairs.floor))};
}

}  // namespace baton::bench
