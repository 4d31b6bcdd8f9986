// How long a lock has no holder after a fault, store by store.

#include <cstdio>
#include <thread>

#include "harness/statistics.h"
#include "stores/deployments.h"
#include "stores/fleet.h"
#include "stores/rows.h"

namespace baton::bench {
namespace {

constexpr Millis kTtl{2000};
constexpr std::size_t kFollowers = 2;

class Measurement {
 public:
  Measurement(std::string row, const RowOptions& options, const Deployment& deployment)
      : row_(std::move(row)), samples_(options.slices), fleet_(deployment, kFollowers, kTtl) {}

  // Each sample strikes at another moment between two renewals.
  void add(const std::string& what, double (Fleet::*strike)()) {
    std::vector<double> times;
    std::vector<double> away;
    for (int i = 0; i < samples_; ++i) {
      fleet_.await_followers();
      std::this_thread::sleep_for(kTtl + kTtl * (2 * i + 1) / (6 * samples_));
      times.push_back((fleet_.*strike)());
      away.push_back(fleet_.milliseconds_away());
      std::fprintf(stderr, "  %s %s: %.0f ms\n", row_.c_str(), what.c_str(), times.back());
    }
    note(what + ", median", "ms", median(times));
    note(what + ", longest", "ms", percentile(times, 1));
    if (away.back() > 0) note(what + ": it is away for, median", "ms", median(away));
  }

  void add_living_leader() {
    int kept = 0;
    for (int i = 0; i < samples_; ++i) {
      fleet_.await_followers();
      kept += fleet_.keeps_leader_over_restart(2 * kTtl) ? 1 : 0;
    }
    note("server restarts, the leader lives and keeps the lock", "of " + std::to_string(samples_),
         kept);
  }

  [[nodiscard]] std::vector<Figure> figures() && { return std::move(figures_); }

 private:
  void note(std::string what, std::string unit, double value) {
    figures_.push_back({.row = row_,
                        .what = std::move(what),
                        .unit = std::move(unit),
                        .ours = value,
                        .score = value,
                        .details = {{"ttl_ms", static_cast<double>(kTtl.count())},
                                    {"samples", static_cast<double>(samples_)}}});
  }

  const std::string row_;
  const int samples_;
  Fleet fleet_;
  std::vector<Figure> figures_;
};

std::vector<Figure> measure(const std::string& store, const RowOptions& options,
                            const Deployment& deployment) {
  Measurement measurement("failover-" + store, options, deployment);
  measurement.add("SIGKILL", &Fleet::kill);
  measurement.add("SIGSTOP", &Fleet::stop);
  if (deployment.port != 0) measurement.add("network cut", &Fleet::cut);
  if (deployment.restart) {
    measurement.add("server and leader crash, the server restarts", &Fleet::crash_all);
    measurement.add_living_leader();
  }
  return std::move(measurement).figures();
}

}  // namespace

std::vector<Figure> failover_sqlite(const RowOptions& options) {
  return measure("sqlite", options, sqlite_deployment());
}
std::vector<Figure> failover_postgres(const RowOptions& options) {
  return measure("postgres", options, postgres_deployment("postgres"));
}
std::vector<Figure> failover_postgres_advisory(const RowOptions& options) {
  return measure("postgres-advisory", options, postgres_deployment("postgres-advisory"));
}
std::vector<Figure> failover_redis(const RowOptions& options) {
  return measure("redis", options, redis_deployment());
}
std::vector<Figure> failover_etcd(const RowOptions& options) {
  return measure("etcd", options, etcd_deployment());
}
#ifdef BATON_HAS_STORE_KUBERNETES
std::vector<Figure> failover_kubernetes(const RowOptions& options) {
  return measure("kubernetes", options, kubernetes_deployment());
}
#endif

}  // namespace baton::bench
