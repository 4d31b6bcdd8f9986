// How evenly the work is shared: 100 cycles a run, each node a process of its own.
//
// The load balance score of a run is 100 × (1 − d / d_max), where d is the sum over the nodes of
// how far their number of fires is from an equal share, and d_max what d would be if one node had
// all.

#include <algorithm>
#include <cmath>
#include <future>
#include <stdexcept>
#include <thread>

#include "schedule/fleet.h"
#include "schedule/rows.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

struct Shares {
  double least = 100;  // percent of any node of any type
  double most = 0;
  double score = 100;
  double twice = 0;  // fires that ran twice, were left out, overlapped

  // The worst of both.
  void add(const Shares& other) {
    least = std::min(least, other.least);
    most = std::max(most, other.most);
    score = std::min(score, other.score);
    twice += other.twice;
  }
};

double score_of(const std::map<std::string, double>& fires, std::size_t nodes) {
  double total = 0;
  for (const auto& [node, count] : fires) total += count;
  const double fair = total / static_cast<double>(nodes);
  double off = (static_cast<double>(nodes) - static_cast<double>(fires.size())) * fair;
  for (const auto& [node, count] : fires) off += std::abs(count - fair);
  return 100 * (1 - off / (2 * (total - fair)));
}

std::vector<std::string> type_names(int types) {
  std::vector<std::string> names;
  for (int i = 0; i < types; ++i) names.push_back("type" + std::to_string(i) + "-observer-poll");
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const auto& name : names) all += (all.empty() ? "names=" : ",") + name;
  return all;
}

std::vector<std::string> settings(int types) {
  return {joined(type_names(types)), "every=100", "run=10", "node_ttl=5000"};
}

// Of the fires from `from` on, so many of each type.
void judge(const test::JobHistory& history, std::int64_t from, int cycles, std::size_t nodes,
           Shares& shares) {
  std::map<std::string, std::map<std::string, double>> by_type;
  std::map<std::string, int> counted;
  std::map<std::string, double> all;
  for (const auto& event : history.of('E')) {
    if (event.at < from || counted[event.job]++ >= cycles) continue;
    ++by_type[event.job][event.node];
    ++all[event.node];
  }
  for (const auto& [type, fires] : by_type) {
    double total = 0;
    for (const auto& [node, count] : fires) total += count;
    if (fires.size() < nodes) shares.least = 0;
    for (const auto& [node, count] : fires) {
      shares.least = std::min(shares.least, 100 * count / total);
      shares.most = std::max(shares.most, 100 * count / total);
    }
  }
  shares.score = std::min(shares.score, score_of(all, nodes));
  shares.twice += static_cast<double>(history.problems().size());
}

std::int64_t now() { return BootClock::now().time_since_epoch().count(); }

// Until every type has had so many fires since `from`.
void await(const JobFleet& fleet, int types, int cycles, std::int64_t from) {
  const auto enough = [&] {
    std::map<std::string, int> counts;
    for (const auto& event : fleet.history().of('E')) counts[event.job] += event.at >= from ? 1 : 0;
    return static_cast<int>(counts.size()) >= types &&
           std::all_of(counts.begin(), counts.end(),
                       [&](const auto& count) { return count.second >= cycles; });
  };
  if (!test::poll_until(enough, 300s, 200ms)) throw std::runtime_error("the fires do not come");
}

Shares run_once(const std::string& store, int nodes, int types, int cycles) {
  Shares shares;
  JobFleet fleet(store);
  for (int i = 0; i < nodes; ++i) fleet.start("node-" + std::to_string(i), settings(types));
  std::this_thread::sleep_for(1200ms);  // all of them have seen each other
  const std::int64_t from = now();
  await(fleet, types, cycles, from);
  fleet.end_all();
  judge(fleet.history(), from, cycles, static_cast<std::size_t>(nodes), shares);
  return shares;
}

std::vector<Figure> figures(const std::string& row, const std::string& what, const Shares& shares,
                            double least, double most) {
  std::vector<Figure> all;
  all.push_back({.row = row,
                 .what = what + ": least share",
                 .unit = "%",
                 .ours = shares.least,
                 .score = shares.least,
                 .bound = Bound::at_least,
                 .target = least});
  all.push_back({.row = row,
                 .what = what + ": largest share",
                 .unit = "%",
                 .ours = shares.most,
                 .score = shares.most,
                 .bound = Bound::at_most,
                 .target = most});
  all.push_back({.row = row,
                 .what = what + ": load balance score",
                 .unit = "",
                 .ours = shares.score,
                 .score = shares.score,
                 .bound = Bound::at_least,
                 .target = 90});
  all.push_back({.row = row,
                 .what = what + ": fires doubled or left out",
                 .unit = "",
                 .ours = shares.twice,
                 .score = shares.twice,
                 .bound = Bound::at_most,
                 .target = 0});
  return all;
}

std::vector<Figure> measure(const std::string& row, int nodes, int types, const RowOptions& options,
                            double least, double most) {
  std::vector<Figure> all;
  for (const std::string store : {"sqlite", "postgres"}) {
    const int runs = store == "sqlite" ? options.runs : std::max(1, options.runs / 4);
    Shares shares;
    for (int done = 0; done < runs; done += options.at_a_time) {
      std::vector<std::future<Shares>> batch;
      for (int i = 0; i < std::min(options.at_a_time, runs - done); ++i) {
        batch.push_back(
            std::async(std::launch::async, run_once, store, nodes, types, options.cycles));
      }
      for (auto& run : batch) shares.add(run.get());
    }
    const std::string what = store + ", " + std::to_string(nodes) + " nodes, " +
                             std::to_string(types) + " types, " + std::to_string(runs) + " runs";
    for (auto& figure : figures(row, what, shares, least, most)) all.push_back(std::move(figure));
  }
  return all;
}

}  // namespace

std::vector<Figure> shares_two_nodes(const RowOptions& options) {
  return measure("shares-2x3", 2, 3, options, 33, 66);
}
std::vector<Figure> shares_three_nodes(const RowOptions& options) {
  return measure("shares-3x3", 3, 3, options, 25, 42);
}
std::vector<Figure> shares_ten_types(const RowOptions& options) {
  return measure("shares-3x10", 3, 10, options, 25, 42);
}

// With cycles of a second, as the node list is looked at once a second.
std::vector<Figure> shares_after_a_change(const RowOptions& options) {
  constexpr int kTypes = 10;
  constexpr int kCycles = 12;
  Shares without;
  Shares again;
  JobFleet fleet("sqlite");
  const std::vector<std::string> with = {joined(type_names(kTypes)), "every=1000", "run=10"};
  for (int i = 0; i < 3; ++i) fleet.start("node-" + std::to_string(i), with);
  (void)options;
  std::this_thread::sleep_for(4s);
  fleet.end("node-2");
  std::this_thread::sleep_for(3s);  // three cycles
  std::int64_t from = now();
  await(fleet, kTypes, kCycles, from);
  judge(fleet.history(), from, kCycles, 2, without);
  fleet.start("node-2", with);
  std::this_thread::sleep_for(3s);
  from = now();
  await(fleet, kTypes, kCycles, from);
  fleet.end_all();
  judge(fleet.history(), from, kCycles, 3, again);
  auto all = figures("shares-change", "3 cycles after one of 3 nodes left", without, 33, 67);
  for (auto& figure : figures("shares-change", "3 cycles after it returned", again, 25, 42)) {
    all.push_back(std::move(figure));
  }
  return all;
}

}  // namespace baton::bench
