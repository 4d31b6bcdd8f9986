#include "explore/wakeup_world.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <unordered_map>
#include <utility>

#include "relay/wakeup.h"

namespace baton::explore {
namespace {

using relay::WakeUp;

enum class Writer : char {
  idle = '.',
  shares = 's',    // has the lock shared
  notifies = 'n',  // could not get it: notifies when it commits
  visible = 'v',   // committed, but its lock is not released yet
  committed = 'c',
  rolled_back = 'r',
};

struct State {
  std::vector<Writer> writers;
  std::vector<bool> seen;
  WakeUp relay;
  bool locked = false;    // by the relay
  bool notified = false;  // and not yet received
};

struct Step {
  std::string what;
  State next;
};

class WakeUpWorld {
 public:
  explicit WakeUpWorld(const WakeUpSetting& setting) : setting_(setting) {}

  State start() const {
    State state;
    state.writers.assign(static_cast<std::size_t>(setting_.writers), Writer::idle);
    state.seen.assign(state.writers.size(), false);
    return state;
  }

  std::vector<Step> steps(const State& state) const {
    std::vector<Step> all;
    for (std::size_t w = 0; w < state.writers.size(); ++w) add_writer(state, w, all);
    add_relay(state, all);
    return all;
  }

  std::string wrong_now(const State& state) const {
    if (state.relay.next() != WakeUp::Step::sleep || state.notified) return {};
    bool notifies = false;
    bool unseen = false;
    for (std::size_t w = 0; w < state.writers.size(); ++w) {
      notifies = notifies || state.writers[w] == Writer::notifies;
      unseen = unseen || (is_visible(state.writers[w]) && !state.seen[w]);
    }
    return unseen && !notifies ? "the relay sleeps on a committed event" : "";
  }

  std::string key(const State& state) const {
    std::string key;
    for (std::size_t w = 0; w < state.writers.size(); ++w) {
      key += static_cast<char>(state.writers[w]);
      key += state.seen[w] ? '+' : '-';
    }
    key += static_cast<char>('0' + static_cast<int>(state.relay.next()));
    key += std::to_string(state.relay.pause().count());
    key += state.relay.holds_lock() ? 'L' : 'l';
    key += state.locked ? 'X' : 'x';
    key += state.notified ? 'N' : 'n';
    return key;
  }

 private:
  static bool is_visible(Writer writer) {
    return writer == Writer::visible || writer == Writer::committed;
  }

  // Whether a writer gets the lock shared.
  bool can_share(const State& state) const { return !state.locked && !setting_.paused_owner; }

  // Whether the relay gets it exclusively.
  bool can_lock(const State& state) const {
    const bool shared = std::any_of(state.writers.begin(), state.writers.end(), [](Writer writer) {
      return writer == Writer::shares || writer == Writer::visible;
    });
    return !shared && !setting_.paused_owner;
  }

  void add_writer(const State& state, std::size_t w, std::vector<Step>& all) const {
    const auto add = [&](const std::string& what, Writer to, bool notified) {
      State next = state;
      next.writers[w] = to;
      next.notified = state.notified || notified;
      all.push_back({"writer " + std::to_string(w) + " " + what, next});
    };
    switch (state.writers[w]) {
      case Writer::idle:
        if (can_share(state)) {
          add("adds with the shared lock", Writer::shares, false);
        } else {
          add("adds and will notify", Writer::notifies, false);
        }
        break;
      case Writer::shares:
        add("commits", Writer::visible, false);
        add("rolls back", Writer::rolled_back, false);
        break;
      case Writer::notifies:
        add("commits and notifies", Writer::committed, true);
        add("rolls back", Writer::rolled_back, false);
        break;
      case Writer::visible: add("releases its lock", Writer::committed, false); break;
      case Writer::committed:
      case Writer::rolled_back: break;
    }
  }

  void add_relay(const State& state, std::vector<Step>& all) const {
    State next = state;
    switch (state.relay.next()) {
      case WakeUp::Step::look: {
        bool found = false;
        for (std::size_t w = 0; w < state.writers.size(); ++w) {
          if (!is_visible(state.writers[w]) || state.seen[w]) continue;
          next.seen[w] = true;
          found = true;
        }
        next.relay.looked(found);
        all.push_back({"the relay looks", next});
        break;
      }
      case WakeUp::Step::lock:
        next.locked = can_lock(state);
        next.relay.locked(next.locked);
        all.push_back({next.locked ? "the relay locks" : "the relay cannot lock", next});
        break;
      case WakeUp::Step::pause:
        next.relay.paused();
        all.push_back({"the relay has paused", next});
        break;
      case WakeUp::Step::sleep:
        if (!state.notified) break;  // the timer is what must not be needed
        next.notified = false;
        next.relay.slept();
        all.push_back({"the relay is notified", next});
        break;
      case WakeUp::Step::unlock:
        next.locked = false;
        next.relay.unlocked();
        all.push_back({"the relay unlocks", next});
        break;
    }
  }

  const WakeUpSetting setting_;
};

}  // namespace

std::vector<WakeUpSetting> wakeup_settings() {
  return {{.title = "wake-up beside three writers"},
          {.title = "wake-up beside a paused owner that keeps the lock",
           .writers = 2,
           .paused_owner = true}};
}

Report explore_wakeup(const WakeUpSetting& setting) {
  struct Known {
    State state;
    std::size_t from = 0;
    std::size_t depth = 0;
    std::string what;
  };
  const WakeUpWorld world(setting);
  const auto began = std::chrono::steady_clock::now();
  Report report{.title = setting.title};
  std::unordered_map<std::string, std::size_t> index;
  std::deque<Known> known;
  const auto add = [&](State state, std::size_t from, std::string what) {
    if (!index.emplace(world.key(state), known.size()).second) return;
    const std::size_t depth = known.empty() ? 0 : known[from].depth + 1;
    report.depth = std::max(report.depth, depth);
    report.problem = world.wrong_now(state);
    known.push_back({std::move(state), from, depth, std::move(what)});
  };
  add(world.start(), 0, "");
  for (std::size_t at = 0; at < known.size() && report.problem.empty(); ++at) {
    for (Step& step : world.steps(known[at].state)) {
      ++report.transitions;
      add(std::move(step.next), at, std::move(step.what));
      if (!report.problem.empty()) break;
    }
  }
  if (!report.problem.empty()) {
    std::vector<std::string> way;
    for (std::size_t at = known.size() - 1; at != 0; at = known[at].from) {
      way.push_back(known[at].what);
    }
    for (auto it = way.rbegin(); it != way.rend(); ++it) report.trace += "  " + *it + "\n";
  }
  report.states = known.size();
  report.complete = report.problem.empty();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return report;
}

}  // namespace baton::explore
