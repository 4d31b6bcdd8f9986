// One lock, a thousand waiters in four processes: what passing it on costs.

#include <algorithm>
#include <map>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "harness/slices.h"
#include "harness/statistics.h"
#include "locks/notify_floor.h"
#include "locks/rows.h"
#include "support/process.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

constexpr int kProcesses = 4;
constexpr int kWaitersEach = 250;
constexpr auto kPatience = 120s;

// The times of a grant, by its token, which grows from holder to holder.
struct Hold {
  double granted = 0;  // ms
  double released = 0;
};

struct Round {
  std::vector<double> times;  // ms from each release to the next grant
  double statements = 0;      // a hand-over
};

class Crowd {
 public:
  explicit Crowd(const std::string& url) {
    for (int i = 0; i < kProcesses; ++i) {
      const std::string name = "waiters" + std::to_string(i);
      processes_.push_back(std::make_unique<test::Process>(test::ProcessOptions{
          .argv = {"/proc/self/exe", "waiters", url + "&application_name=" + name,
                   std::to_string(kWaitersEach)}}));
    }
    for (auto& process : processes_) expect(*process, "ready\n");
    read_to_.resize(processes_.size());
  }

  void start_round(int number) {
    for (auto& process : processes_) process->write(std::to_string(number) + "\n");
  }

  // What all processes say of this round, when all are through.
  std::map<Token, Hold> finish_round(int number) {
    std::map<Token, Hold> holds;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      expect(*processes_[i], "done " + std::to_string(number) + "\n");
      const std::string out = processes_[i]->out();
      std::istringstream lines(out.substr(read_to_[i]));
      read_to_[i] = out.size();
      for (std::string kind; lines >> kind;) {
        if (kind != "G" && kind != "R") continue;
        double at = 0;
        Token token = 0;
        lines >> at >> token;
        (kind == "G" ? holds[token].granted : holds[token].released) = at / 1e6;
      }
    }
    return holds;
  }

 private:
  static void expect(test::Process& process, const std::string& text) {
    if (process.wait_for_out(text, kPatience)) return;
    throw std::runtime_error("a process of waiters does not come through: " + process.err());
  }

  std::vector<std::unique_ptr<test::Process>> processes_;
  std::vector<std::size_t> read_to_;
};

// The sum of all statements that clients sent to the database.
double statements(Session& admin) {
  return admin.number(
      "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s"
      " JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = 'handover'");
}

void wait_until_all_wait(LockClient& locks) {
  const Instant patience = BootClock::now() + kPatience;
  while (locks.get({.subject = "baton"}).value().waiting < kProcesses * kWaitersEach) {
    if (BootClock::now() > patience) throw std::runtime_error("not all waiters queue up");
    std::this_thread::sleep_for(20ms);
  }
}

Round run_round(LockClient& locks, Crowd& crowd, Session& admin, int number) {
  auto lease = locks.acquire({.subject = "baton"}, {.wait = 10s}).value();
  crowd.start_round(number);
  wait_until_all_wait(locks);
  const double before = statements(admin);
  Hold first{.released = static_cast<double>(BootClock::now().time_since_epoch().count()) / 1e6};
  lease.release().value();
  const auto holds = crowd.finish_round(number);
  Round round;
  round.statements = (statements(admin) - before) / (kProcesses * kWaitersEach);
  const Hold* previous = &first;
  for (const auto& [token, hold] : holds) {
    round.times.push_back(hold.granted - previous->released);
    previous = &hold;
  }
  if (round.times.size() != kProcesses * kWaitersEach)
    throw std::runtime_error("grants are missing");
  return round;
}

Figure against_floor(const char* what, const std::vector<double>& ours,
                     const std::vector<double>& floor, double target) {
  return {.row = "handover",
          .what = what,
          .unit = "ms",
          .ours = median(ours),
          .floor = median(floor),
          .score = median(ratios(ours, floor)),
          .bound = Bound::at_most,
          .target = target};
}

}  // namespace

std::vector<Figure> handover(Lab& lab) {
  const std::string url = lab.new_database("handover");
  LockClient locks = open_or_throw(url);
  Session admin(lab.admin_url());
  NotifyFloor floor(lab.admin_url());
  Crowd crowd(url);
  Pairs middle;
  Pairs high;
  std::vector<double> counts;
  const int rounds = std::max(3, lab.options().slices / 2);
  for (int i = 0; i <= rounds; ++i) {
    const Round round = run_round(locks, crowd, admin, i);
    const auto raw = floor.measure(lab.options().slice);
    if (i == 0) continue;  // connections, first plans
    middle.ours.push_back(percentile(round.times, 0.5));
    middle.floor.push_back(percentile(raw, 0.5));
    high.ours.push_back(percentile(round.times, 0.95));
    high.floor.push_back(percentile(raw, 0.95));
    counts.push_back(round.statements);
  }
  Figure sent{.row = "handover",
              .what = "statements a hand-over, 1,000 waiters, 4 processes",
              .ours = median(counts),
              .score = median(counts),
              .bound = Bound::at_most,
              .target = 3};
  Figure connections{.row = "handover",
                     .what = "connections of one such process",
                     .bound = Bound::at_most,
                     .target = 4};
  connections.ours = connections.score = admin.number(
      "SELECT max(n) FROM (SELECT count(*) AS n FROM pg_stat_activity"
      " WHERE application_name LIKE 'waiters%' GROUP BY application_name) c");
  return {std::move(sent), std::move(connections),
          against_floor("hand-over time, median, against commit + NOTIFY", middle.ours,
                        middle.floor, 5),
          against_floor("hand-over time, 95%, against commit + NOTIFY", high.ours, high.floor, 10)};
}

}  // namespace baton::bench
