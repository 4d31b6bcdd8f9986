#include "explore/explorer.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <random>
#include <sstream>

#include "explore/steps.h"

namespace baton::explore {
namespace {

// A set of 64-bit fingerprints in one block of memory. With ten million states the odds that two
// share a fingerprint, and one of them is therefore not looked into, are below 1 in 300,000.
class FingerprintSet {
 public:
  bool insert(std::uint64_t fingerprint) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    std::uint64_t& slot = slots_[place_of(fingerprint)];
    if (slot == fingerprint) return false;
    slot = fingerprint;
    ++size_;
    return true;
  }
  [[nodiscard]] bool contains(std::uint64_t fingerprint) const {
    return slots_[place_of(fingerprint)] == fingerprint;
  }

 private:
  [[nodiscard]] std::size_t place_of(std::uint64_t fingerprint) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = fingerprint & mask;
    while (slots_[place] != 0 && slots_[place] != fingerprint) place = (place + 1) & mask;
    return place;
  }
  void grow() {
    std::vector<std::uint64_t> old(2 * slots_.size());
    old.swap(slots_);
    for (const std::uint64_t fingerprint : old) {
      if (fingerprint != 0) slots_[place_of(fingerprint)] = fingerprint;
    }
  }
  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1024);
  std::size_t size_ = 0;
};

// How a state was first reached. The states themselves are not kept: the way is walked again when
// it must be told.
struct Origin {
  std::uint32_t parent = 0;
  Step step;
};

struct Entry {
  std::uint32_t index = 0;
  World world;
};

std::string tell(Machine& machine, const std::vector<Step>& way) {
  std::ostringstream out;
  World world = machine.first();
  for (std::size_t i = 0; i < way.size(); ++i) {
    out << std::setw(4) << i + 1 << ". " << machine.describe(world, way[i]) << '\n';
    machine.perform(world, way[i]);
    out << describe(world, machine.setting());
  }
  return out.str();
}

bool may_begin(const World& world, const Setting& setting) {
  return std::any_of(world.clients.begin(),
                     world.clients.begin() + static_cast<std::ptrdiff_t>(setting.clients),
                     [&](const ClientCell& client) { return client.begun < setting.acquisitions; });
}

class Search {
 public:
  explicit Search(const Setting& setting) : machine_(setting) {}

  Report run() {
    const auto start = std::chrono::steady_clock::now();
    report_.title = machine_.setting().title;
    std::vector<Entry> level;
    visit(machine_.first(), {}, level);
    while (!level.empty() && report_.problem.empty() && !full()) {
      ++report_.depth;
      std::vector<Entry> next;
      for (const Entry& entry : level) {
        if (!expand(entry, next)) break;
      }
      level = std::move(next);
    }
    report_.states = origins_.size();
    report_.complete = level.empty() && report_.problem.empty() && !full();
    if (report_.complete) --report_.depth;  // nothing was found below the deepest level
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    report_.seconds = taken.count();
    return std::move(report_);
  }

 private:
  [[nodiscard]] bool full() const { return origins_.size() >= machine_.setting().max_states; }

  bool expand(const Entry& entry, std::vector<Entry>& next) {
    machine_.possible(entry.world, steps_);
    for (const Step step : steps_) {
      if (full()) return false;
      World world = entry.world;
      ++report_.transitions;
      const std::string problem = machine_.perform(world, step);
      if (!problem.empty()) return fail(problem, {entry.index, step});
      if (!visit(world, {entry.index, step}, next)) return false;
    }
    return true;
  }

  bool visit(const World& world, Origin origin, std::vector<Entry>& level) {
    const std::uint64_t print = fingerprint(world);
    if (!seen_.insert(print)) return true;
    const auto index = static_cast<std::uint32_t>(origins_.size());
    origins_.push_back(origin);
    level.push_back({index, world});
    if (index % machine_.setting().live_every != 0) return true;
    return fair_end(world, print, origin);
  }

  // Runs the fair schedule until everything is at rest, or until a state whose end is known.
  bool fair_end(World world, std::uint64_t print, Origin origin) {
    constexpr int kLongEnough = 64;
    ++report_.fair_runs;
    passed_.assign(1, print);
    taken_.clear();
    for (int i = 0; i < kLongEnough; ++i) {
      if (live_.contains(passed_.back()) || machine_.at_rest(world)) {
        for (const std::uint64_t passed : passed_) live_.insert(passed);
        return true;
      }
      const std::string problem = machine_.be_fair(world, taken_);
      if (!problem.empty()) return fail(problem, origin, taken_);
      passed_.push_back(fingerprint(world));
    }
    fail("progress: though all are fair, somebody has no answer or the store cannot forget",
         origin);
    report_.trace += "  and after " + std::to_string(kLongEnough) + " fair ticks\n" +
                     describe(world, machine_.setting());
    return false;
  }

  bool fail(const std::string& problem, Origin origin, const std::vector<Step>& more = {}) {
    report_.problem = problem;
    std::vector<Step> way = {origin.step};
    for (std::uint32_t index = origin.parent; index != 0; index = origins_[index].parent) {
      way.push_back(origins_[index].step);
    }
    std::reverse(way.begin(), way.end());
    way.insert(way.end(), more.begin(), more.end());
    report_.trace = tell(machine_, way);
    return false;
  }

  Machine machine_;
  FingerprintSet seen_;
  FingerprintSet live_;
  std::vector<Origin> origins_;
  std::vector<Step> steps_;
  std::vector<Step> taken_;
  std::vector<std::uint64_t> passed_;
  Report report_;
};

}  // namespace

Report explore(const Setting& setting) { return Search(setting).run(); }

Report wander(const Setting& setting, std::uint64_t seed) {
  const auto start = std::chrono::steady_clock::now();
  Machine machine(setting);
  std::mt19937_64 random(seed);
  Report report;
  report.title = setting.title;
  std::vector<Step> way;
  std::vector<Step> steps;
  World world = machine.first();
  while (report.problem.empty() && report.transitions < setting.max_states) {
    machine.possible(world, steps);
    Step step = steps[random() % steps.size()];
    // Faults are a large part of what is possible; as often as that, no lease would ever live.
    for (int i = 0; i < 2 && is_fault(step.kind); ++i) step = steps[random() % steps.size()];
    way.push_back(step);
    ++report.transitions;
    report.problem = machine.perform(world, step);
    report.depth = std::max(report.depth, way.size());
    if (!report.problem.empty()) {
      report.trace = tell(machine, way);
    } else if (!may_begin(world, setting) && machine.at_rest(world)) {
      ++report.walks;
      way.clear();
      world = machine.first();
    }
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  report.seconds = taken.count();
  return report;
}

std::string summary(const Report& report) {
  std::ostringstream out;
  out << std::left << std::setw(54) << report.title << std::right;
  if (report.walks > 0) {
    out << std::setw(9) << report.walks << " walks of" << std::setw(10) << report.transitions
        << " steps, the longest " << report.depth;
  } else {
    out << std::setw(9) << report.states << " states" << std::setw(10) << report.transitions
        << " transitions, depth " << std::setw(2) << report.depth
        << (report.complete ? " (all)" : " (bound)") << ", " << report.fair_runs << " fair runs";
  }
  out << std::fixed << std::setprecision(1) << ", " << report.seconds << " s";
  return out.str();
}

}  // namespace baton::explore
