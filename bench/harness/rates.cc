#include "harness/rates.h"

#include <algorithm>

#include "harness/machine.h"
#include "harness/statistics.h"

namespace baton::bench {

Figure compare_rates(const SliceOptions& options, std::string row, std::string what,
                     std::optional<double> target, const Load& ours, const Load& floor) {
  const Pairs pairs =
      take_turns(options.slices, [&] { return interleave(options.slice, ours, floor); });
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
