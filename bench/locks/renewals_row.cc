// A process that holds very many leases: what keeping them costs.

#include <sstream>
#include <stdexcept>

#include "harness/statistics.h"
#include "locks/rows.h"
#include "support/process.h"

namespace baton::bench {

using namespace std::chrono_literals;

std::vector<Figure> renewals(Lab& lab) {
  constexpr int kLeases = 100'000;
  constexpr int kRounds = 3;  // one takes a third of the TTL
  const std::string url = lab.new_database("renewals");
  test::Process holder({.argv = {"/proc/self/exe", "holder", url, std::to_string(kLeases),
                                 std::to_string(kRounds)}});
  const auto ended = holder.wait(180s);
  if (!ended || !ended->success()) throw std::runtime_error("the holder failed: " + holder.err());
  say("  " + holder.err().substr(0, holder.err().find('\n')));
  std::vector<double> times;
  double resident = 0;
  double lost = 0;
  double batches = 0;
  double failed = 0;
  std::istringstream lines(holder.out());
  double seconds = 0;
  double failed_now = 0;
  while (lines >> seconds >> batches >> failed_now >> lost >> resident) {
    times.push_back(seconds);
    failed += failed_now;
  }
  Figure time{.row = "renewals",
              .what = "renewing 100,000 leases once, TTL 30 s",
              .unit = "s",
              .ours = median(times),
              .score = median(times),
              .bound = Bound::at_most,
              .target = 1,
              .details = {{"fastest_round", percentile(times, 0)},
                          {"slowest_round", percentile(times, 1)},
                          {"batches", batches},
                          {"failed_batches", failed}}};
  Figure gone{.row = "renewals",
              .what = "leases not held at the end",
              .ours = lost,
              .score = lost,
              .bound = Bound::at_most,
              .target = 0};
  Figure memory{.row = "renewals",
                .what = "resident memory of their process",
                .unit = "MB",
                .ours = resident,
                .score = resident,
                .bound = Bound::at_most,
                .target = 150};
  return {std::move(time), std::move(gone), std::move(memory)};
}

}  // namespace baton::bench
