// What counting costs: the same pairs on the fastest store, with and without metrics.

#include "baton/lock_metrics.h"
#include "harness/slices.h"
#include "harness/statistics.h"
#include "locks/callers.h"
#include "locks/rows.h"

namespace baton::bench {
namespace {

constexpr int kNames = 16;
constexpr double kOperationsOfAPair = 2;

LockClient memory_client(std::shared_ptr<ClientObserver> observer) {
  return open("memory:", {.observer = std::move(observer)}).value();
}

Figure cost_with(Lab& lab, int count) {
  const auto metrics = std::make_shared<observe::Metrics>();
  const auto counted =
      callers(memory_client(std::make_shared<observe::LockMetrics>(metrics)), count, kNames);
  const auto plain = callers(memory_client(nullptr), count, kNames);
  const auto micros = [&](const std::vector<Step>& steps) {
    return [&] {
      const Slice slice = run_slice(steps, lab.options().slice);
      return slice.cpu / static_cast<double>(slice.steps) / kOperationsOfAPair * 1e6;
    };
  };
  const Pairs pairs = take_turns(lab.options().slices, micros(counted), micros(plain));
  std::vector<double> differences;
  for (std::size_t i = 0; i < pairs.ours.size(); ++i) {
    differences.push_back(pairs.ours[i] - pairs.floor[i]);
  }
  return {.row = "metrics",
          .what = "Metrics, memory store, " + std::to_string(count) +
                  (count == 1 ? " caller" : " callers") + ": processor time they add",
          .unit = "us/operation",
          .ours = median(differences),
          .score = median(differences),
          .bound = Bound::at_most,
          .target = 1,
          .details = {{"with", median(pairs.ours)}, {"without", median(pairs.floor)}}};
}

}  // namespace

std::vector<Figure> metrics_cost(Lab& lab) { return {cost_with(lab, 1), cost_with(lab, 2)}; }

}  // namespace baton::bench
