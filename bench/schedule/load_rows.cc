// What scheduling costs, and how soon a killed node is replaced.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <thread>

#include "harness/statistics.h"
#include "schedule/fleet.h"
#include "schedule/rows.h"
#include "support/wait.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

std::int64_t now() { return BootClock::now().time_since_epoch().count(); }

Figure judged(std::string row, std::string what, std::string unit, double value, double at_most) {
  return {.row = std::move(row),
          .what = std::move(what),
          .unit = std::move(unit),
          .ours = value,
          .score = value,
          .bound = Bound::at_most,
          .target = at_most};
}

// Which jobs the node runs right now.
std::vector<std::string> jobs_on(const test::JobHistory& history, const std::string& node) {
  std::map<std::string, bool> runs;
  for (const auto& event : history.events()) {
    if (event.node == node) runs[event.job] = event.what == 'S';
  }
  std::vector<std::string> jobs;
  for (const auto& [job, running] : runs) {
    if (running) jobs.push_back(job);
  }
  return jobs;
}

// Kills the node in the middle of a fire; gives the milliseconds until others run all that it ran.
double kill_and_wait(JobFleet& fleet, const std::string& node) {
  std::vector<std::string> jobs;
  const auto busy = [&] { return !(jobs = jobs_on(fleet.history(), node)).empty(); };
  if (!test::poll_until(busy, 60s, 5ms)) throw std::runtime_error(node + " runs nothing");
  std::this_thread::sleep_for(500ms);  // of 1.5 s
  jobs = jobs_on(fleet.history(), node);
  const std::int64_t killed = now();
  fleet.kill(node);
  double longest = 0;
  const auto taken_over = [&] {
    std::map<std::string, double> first;
    for (const auto& event : fleet.history().of('S')) {
      if (event.at <= killed || event.node == node) continue;
      first.try_emplace(event.job, static_cast<double>(event.at - killed) / 1e6);
    }
    longest = 0;
    for (const auto& job : jobs) {
      if (!first.contains(job)) return false;
      longest = std::max(longest, first[job]);
    }
    return true;
  };
  if (!test::poll_until(taken_over, 60s, 20ms)) throw std::runtime_error("nobody takes over");
  return longest;
}

// Without a server for it there is nothing to measure; every other store must be there.
std::unique_ptr<JobFleet> fleet_on(const std::string& store) {
  try {
    return std::make_unique<JobFleet>(store);
  } catch (const std::exception& problem) {
    if (store != "kubernetes") throw;
    std::fprintf(stderr, "kubernetes is left out: %s\n", problem.what());
    return nullptr;
  }
}

}  // namespace

std::vector<Figure> overhead(const RowOptions& /*options*/) {
  std::vector<Figure> all;
  for (const std::string& store : known_stores()) {
    const auto fleet = fleet_on(store);
    if (!fleet) continue;
    for (int i = 0; i < 2; ++i) {
      fleet->start("node-" + std::to_string(i),
                   {"names=order,inventory,wes", "every=200", "run=50"});
    }
    std::this_thread::sleep_for(12s);
    fleet->end_all();
    all.push_back(judged(
        "overhead", store + ": lock overhead of a 50 ms poll, median", "%",
        100 * fleet->most("asked_p50_us") / 50e3 + 100 * fleet->most("release_p50_us") / 50e3, 5));
    // The design asks for this of its databases; on the others it is what it is.
    if (store != "sqlite" && store != "postgres") all.back().target.reset();
    all.push_back(judged("overhead", store + ": acquisition, p95", "ms",
                         fleet->most("asked_p95_us") / 1e3, 100));
  }
  return all;
}

std::vector<Figure> take_over(const RowOptions& /*options*/) {
  constexpr int kNodes = 3;  // each is killed once
  std::vector<Figure> all;
  for (const std::string& store : known_stores()) {
    if (store == "etcd" || store == "kubernetes") continue;
    const bool at_once = store == "postgres-advisory";
    const std::string ttl = at_once ? "60000" : "3000";
    JobFleet fleet(store);
    const std::vector<std::string> settings = {"names=order,inventory,wes", "every=300", "run=1500",
                                               "ttl=" + ttl, "node_ttl=" + ttl};
    for (int i = 0; i < kNodes; ++i) fleet.start("node-" + std::to_string(i), settings);
    double longest = 0;
    for (int i = 0; i < kNodes; ++i) {
      const std::string victim = "node-" + std::to_string(i);
      longest = std::max(longest, kill_and_wait(fleet, victim));
      fleet.start(victim, settings);
    }
    fleet.end_all();
    all.push_back(judged("take-over",
                         store + ": types of a killed node run again, longest of " +
                             std::to_string(kNodes) + ", TTL " + (at_once ? "60 s" : "3 s"),
                         "ms", longest, at_once ? 1000 : 3000));
    all.push_back(judged("take-over", store + ": fires doubled or left out", "",
                         static_cast<double>(fleet.history().problems().size()), 0));
  }
  return all;
}

std::vector<Figure> many_jobs(const RowOptions& options) {
  JobFleet fleet("postgres");
  const std::vector<std::string> settings = {"jobs=" + std::to_string(options.jobs), "kind=rate",
                                             "every=1000", "run=1", "workers=32"};
  for (int i = 0; i < options.nodes; ++i) fleet.start("node-" + std::to_string(i), settings);
  std::this_thread::sleep_for(10s);  // every job is registered and under way
  const std::int64_t from = now();
  const double cpu = fleet.server_cpu_seconds();
  const double transactions = fleet.server_transactions();
  std::this_thread::sleep_for(std::chrono::seconds(options.seconds));
  const std::int64_t until = now();
  const double server = fleet.server_cpu_seconds() - cpu;
  const double statements = fleet.server_transactions() - transactions;
  fleet.end_all();
  const auto history = fleet.history();
  std::map<std::string, double> fires;
  std::vector<double> late;
  std::map<std::string, double> nodes;
  for (const auto& event : history.of('S')) {
    if (event.at < from || event.at >= until) continue;
    ++fires[event.job];
    ++nodes[event.node];
    late.push_back(static_cast<double>(event.late) / 1e3);
  }
  const double seconds = static_cast<double>(until - from) / 1e9;
  double missed = 0;
  double total = 0;
  for (int i = 0; i < options.jobs; ++i) {
    const double count = fires["job-" + std::to_string(i)];
    total += count;
    missed += std::max(0.0, std::floor(seconds) - 1 - count);
  }
  const std::string row = "many-jobs";
  std::vector<Figure> all;
  all.push_back(judged(row, "fire times that passed without a start", "", missed, 0));
  all.push_back(judged(row, "fires doubled, overlapping or left out", "",
                       static_cast<double>(history.problems().size()), 0));
  all.push_back({.row = row,
                 .what = "fires a second",
                 .unit = "/s",
                 .ours = total / seconds,
                 .score = total / seconds});
  all.push_back({.row = row, .what = "late, median", .unit = "ms", .ours = median(late)});
  all.push_back({.row = row, .what = "late, p99", .unit = "ms", .ours = percentile(late, 0.99)});
  all.push_back({.row = row,
                 .what = "transactions a fire, all nodes",
                 .unit = "",
                 .ours = statements / total});
  all.push_back(
      {.row = row, .what = "CPU of the server", .unit = "cores", .ours = server / seconds});
  all.push_back({.row = row,
                 .what = "CPU of all nodes",
                 .unit = "cores",
                 .ours = fleet.cost("cpu_ms") / 1e3 / (seconds + 10)});
  all.push_back({.row = row,
                 .what = "requests refused as superseded or busy, a fire",
                 .unit = "",
                 .ours = (fleet.cost("superseded") + fleet.cost("busy")) /
                         std::max(1.0, fleet.cost("granted"))});
  for (const auto* what : {"applies", "finds", "granted", "superseded", "busy", "released",
                           "asked_p50_us", "asked_p95_us", "release_p50_us", "release_p95_us"}) {
    all.front().details.emplace_back(what, fleet.cost(what));
  }
  for (Figure& figure : all) figure.score = figure.ours;
  return all;
}

}  // namespace baton::bench
