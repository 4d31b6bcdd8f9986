// A leader and ten followers on advisory locks; the leader is killed. How long until another leads?

#include "harness/statistics.h"
#include "stores/deployments.h"
#include "stores/fleet.h"
#include "stores/rows.h"

namespace baton::bench {
namespace {

constexpr std::size_t kFollowers = 10;
constexpr int kSamples = 100;
constexpr Millis kTtl{30'000};

}  // namespace

std::vector<Figure> advisory_failover(const RowOptions& /*options*/) {
  const Deployment deployment = postgres_deployment("postgres-advisory");
  Fleet fleet(deployment, kFollowers, kTtl);
  std::vector<double> times;
  for (int i = 0; i < kSamples; ++i) {
    fleet.await_followers();
    times.push_back(fleet.kill());
  }
  Figure figure{.row = "advisory-failover",
                .what = "from SIGKILL of the leader to the next one, 10 followers, 95%",
                .unit = "ms",
                .ours = percentile(times, 0.95),
                .bound = Bound::at_most,
                .target = 100};
  figure.score = figure.ours;
  figure.details = {{"samples", static_cast<double>(times.size())},
                    {"median", percentile(times, 0.5)},
                    {"longest", percentile(times, 1.0)}};
  return {std::move(figure)};
}

}  // namespace baton::bench
