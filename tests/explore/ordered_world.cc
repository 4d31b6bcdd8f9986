#include "explore/ordered_world.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>

#include "explore/search.h"
#include "inbox/decision.h"
#include "inbox/delivery_progress.h"

namespace baton::explore {
namespace {

using inbox::Aggregate;
using inbox::Decision;
using inbox::DeliveryProgress;
using inbox::Ledger;
using inbox::Outcome;
using inbox::Row;
using inbox::Status;

constexpr int kReplicas = 2;
constexpr std::size_t kMaxEvents = 3;
constexpr std::size_t kPrefetch = 2;
constexpr int kNobody = -1;
const inbox::RetryLimits kLimits{.max_retries = 1};

struct Replica {
  enum class Phase : char {
    idle = 'i',
    delivery = 'd',
    claimed = 'c',
    works = 'w',
    failed = 'f',
    gives_up = 'g'
  };
  Phase phase = Phase::idle;
  DeliveryProgress progress;  // of a delivery
  bool connected = true;      // to the broker
  std::vector<int> waiting;   // deliveries in hand that were not begun
  int event = kNobody;        // that was begun, or claimed
  bool unsettled = false;     // it is a delivery that is not acknowledged
  bool effect = false;        // in the open transaction
  Decision decision{};        // likewise; nothing to write: moot
  std::int64_t claim = 0;
};

struct OneEvent {
  Ledger ledger;
  Row row;
  int arrival = 0;  // of the row
  int ledger_lock = kNobody;
  int row_lock = kNobody;
  int effects = 0;
  int compensations = 0;
  int runs = 0;         // since it was put into the inbox or redriven
  bool held = false;    // it came as HELD: its first attempt is one of them
  bool buried = false;  // DEAD without an attempt
  bool later_version = false;
};

struct State {
  std::vector<int> queue;
  int active = 0;
  std::array<Replica, kReplicas> replicas{};
  std::array<OneEvent, kMaxEvents> events{};
  int arrivals = 0;
  OrderedSetting left;
};

using Step = WorldStep<State>;

class OrderedWorld {
 public:
  explicit OrderedWorld(OrderedSetting setting) : setting_(std::move(setting)) {}

  State start() const {
    State state;
    state.left = setting_;
    state.queue.resize(count());
    std::iota(state.queue.begin(), state.queue.end(), 0);
    if (setting_.buried >= 0) state.events[at(setting_.buried)].later_version = true;
    return state;
  }

  std::vector<Step> steps(const State& state) const {
    std::vector<Step> all;
    for (int r = 0; r < kReplicas; ++r) {
      add_faults(state, r, all);
      switch (state.replicas[at(r)].phase) {
        case Replica::Phase::idle: add_idle(state, r, all); break;
        case Replica::Phase::delivery: add_delivery(state, r, all); break;
        case Replica::Phase::claimed: add_lock(state, r, all); break;
        case Replica::Phase::works: add_work(state, r, all); break;
        case Replica::Phase::failed:
        case Replica::Phase::gives_up: add_failure(state, r, all); break;
      }
    }
    add_others(state, all);
    return all;
  }

  std::string wrong_now(const State& state) const {
    for (std::size_t e = 0; e < count(); ++e) {
      const OneEvent& one = state.events[e];
      const auto wrong = [&](const std::string& what) {
        return "event " + std::to_string(e) + " " + what;
      };
      const bool has_row = one.row.has_value();
      const bool waits =
          has_row && (one.row->status == Status::retry || one.row->status == Status::held);
      const bool dead = has_row && one.row->status == Status::dead;
      if (one.effects > 1) return wrong("has two effects");
      if (one.compensations > 1) return wrong("was given up twice");
      if (one.runs > kLimits.max_retries + (one.held ? 1 : 0)) {
        return wrong("was tried more often than allowed");
      }
      if (dead && one.compensations == 0 && !one.buried) return wrong("is DEAD without its hook");
      if (waits && one.ledger != Outcome::retrying) return wrong("waits, the ledger disagrees");
      if (dead && one.ledger != Outcome::dead) return wrong("is DEAD, the ledger disagrees");
      if (one.ledger == Outcome::retrying && !has_row) return wrong("is retrying without a row");
      if (one.ledger == Outcome::done && has_row) return wrong("is done with a row");
      if (one.ledger == Outcome::discarded && one.effects > 0) {
        return wrong("is discarded after its effect");
      }
      if (!one.ledger && !on_its_way(state, static_cast<int>(e))) return wrong("is lost");
    }
    return {};
  }

  // Each is settled for good, DEAD, or waits behind a DEAD one.
  bool is_end(const State& state) const {
    bool dead = false;
    for (std::size_t e = 0; e < count(); ++e) {
      if (state.events[e].ledger == Outcome::dead) dead = true;
      if (!is_settled(state, e) && !dead) return false;
    }
    return true;
  }

  std::string key(const State& state) const {
    std::string key;
    const auto add = [&](std::int64_t number) { key += static_cast<char>('A' + number); };
    for (const int e : state.queue) add(e);
    key += '/';
    add(state.active);
    for (const Replica& one : state.replicas) {
      key += static_cast<char>(one.phase);
      add(static_cast<int>(one.progress.next()));
      for (const int e : one.waiting) add(e);
      key += '/';
      add(one.event);
      add(one.claim);
      add(one.connected + 2 * one.unsettled + 4 * one.effect + 8 * one.decision.moot +
          16 * (one.decision.rows == Decision::Rows::put));
    }
    for (std::size_t e = 0; e < count(); ++e) {
      const OneEvent& one = state.events[e];
      add(one.ledger ? static_cast<int>(*one.ledger) : -1);
      add(one.row ? static_cast<int>(one.row->status) : -1);
      add(one.row ? one.row->retries : -1);
      add(one.row ? one.row->claim : -1);
      // Only the order of arrivals counts.
      add(std::count_if(state.events.begin(), state.events.end(),
                        [&](const OneEvent& other) { return other.arrival < one.arrival; }));
      for (const int number : {one.ledger_lock, one.row_lock, one.effects, one.compensations,
                               one.runs, one.held + 2 * one.buried + 4 * one.later_version}) {
        add(number);
      }
    }
    for (const int number : {state.left.crashes, state.left.disconnects, state.left.duplicates,
                             state.left.redrives, state.left.discards, state.left.failures}) {
      add(number);
    }
    return key;
  }

  std::string print(const State& state) const {
    std::string text = "queue";
    for (const int e : state.queue) text += " " + std::to_string(e);
    for (std::size_t e = 0; e < count(); ++e) {
      const OneEvent& one = state.events[e];
      text += "; " + std::to_string(e) + ": ledger ";
      text += one.ledger ? text_of(*one.ledger) : "-";
      if (one.row) {
        text += ", ";
        text += text_of(one.row->status);
        text += " claim " + std::to_string(one.row->claim);
      }
    }
    return text;
  }

 private:
  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  std::size_t count() const { return at(setting_.events); }
  static std::string name(int r) { return "replica " + std::to_string(r) + " "; }

  static bool is_settled(const State& state, std::size_t e) {
    const Ledger& ledger = state.events[e].ledger;
    return ledger == Outcome::done || ledger == Outcome::discarded;
  }

  // What is wrong if the handler of the event begins now, or commits.
  static std::string too_early(const State& state, int event) {
    for (std::size_t e = 0; e < at(event); ++e) {
      if (!is_settled(state, e)) {
        return "event " + std::to_string(event) + " is handled before event " + std::to_string(e);
      }
    }
    return {};
  }

  static bool on_its_way(const State& state, int event) {
    const auto has = [&](const std::vector<int>& all) {
      return std::find(all.begin(), all.end(), event) != all.end();
    };
    if (has(state.queue)) return true;
    return std::any_of(state.replicas.begin(), state.replicas.end(), [&](const Replica& one) {
      return one.connected && (has(one.waiting) || (one.unsettled && one.event == event));
    });
  }

  Aggregate aggregate_of(const State& state) const {
    for (std::size_t e = 0; e < count(); ++e) {
      const Row& row = state.events[e].row;
      if (row && inbox::holds(row->status)) return Aggregate::in_trouble;
    }
    return Aggregate::free;
  }

  std::optional<std::size_t> head(const State& state) const {
    std::vector<std::size_t> events;
    std::vector<inbox::Arrived> rows;
    for (std::size_t e = 0; e < count(); ++e) {
      if (!state.events[e].row) continue;
      events.push_back(e);
      rows.push_back({state.events[e].row->status, state.events[e].arrival});
    }
    const auto found = inbox::head_of(rows);
    if (!found) return {};
    return events[*found];
  }

  static void apply(State& state, std::size_t e, const Decision& decision) {
    if (decision.moot) return;
    OneEvent& one = state.events[e];
    if (decision.ledger) one.ledger = decision.ledger;
    if (decision.rows == Decision::Rows::put) {
      if (!one.row) {
        one.arrival = ++state.arrivals;
        one.held = decision.row.status == Status::held;
      }
      one.row = decision.row;
    }
    if (decision.rows == Decision::Rows::erase) one.row.reset();
    if (decision.run_hook) ++one.compensations;
  }

  // The transaction of the replica is gone.
  static void roll_back(State& state, int r) {
    Replica& own = state.replicas[at(r)];
    own.effect = false;
    own.decision = {.moot = true};
    for (OneEvent& one : state.events) {
      if (one.ledger_lock == r) one.ledger_lock = kNobody;
      if (one.row_lock == r) one.row_lock = kNobody;
    }
  }

  // In the order in which it was delivered, before what was not.
  static void give_back(State& state, int r) {
    const Replica& own = state.replicas[at(r)];
    if (own.connected) {
      state.queue.insert(state.queue.begin(), own.waiting.begin(), own.waiting.end());
      if (own.unsettled) state.queue.insert(state.queue.begin(), own.event);
    }
    if (state.active == r) state.active = 1 - r;
  }

  static void add_faults(const State& state, int r, std::vector<Step>& all) {
    const Replica& one = state.replicas[at(r)];
    if (state.left.crashes > 0) {
      State next = state;
      --next.left.crashes;
      give_back(next, r);
      roll_back(next, r);
      next.replicas[at(r)] = {};
      all.push_back({name(r) + "dies and is started again", next, {}});
    }
    if (state.left.disconnects > 0 && one.connected && (!one.waiting.empty() || one.unsettled)) {
      State next = state;
      --next.left.disconnects;
      give_back(next, r);
      next.replicas[at(r)].connected = false;
      all.push_back({name(r) + "loses the broker, and does not notice", next, {}});
    }
  }

  void add_idle(const State& state, int r, std::vector<Step>& all) const {
    const Replica& one = state.replicas[at(r)];
    if (!one.connected) {
      State next = state;
      next.replicas[at(r)].connected = true;
      next.replicas[at(r)].waiting.clear();
      all.push_back({name(r) + "notices, and finds the broker again", next, {}});
    } else if (!state.queue.empty() && state.active == r && one.waiting.size() < kPrefetch) {
      State next = state;
      next.replicas[at(r)].waiting.push_back(next.queue.front());
      next.queue.erase(next.queue.begin());
      all.push_back({name(r) + "takes a delivery", next, {}});
    }
    if (!one.waiting.empty()) {
      State next = state;
      Replica& own = next.replicas[at(r)];
      own.event = own.waiting.front();
      own.waiting.erase(own.waiting.begin());
      own.unsettled = own.connected;
      own.progress = {};
      own.phase = Replica::Phase::delivery;
      all.push_back({name(r) + "begins with a delivery of " + std::to_string(own.event), next, {}});
    }
    if (const auto e = head(state); e && state.events[*e].row_lock == kNobody) {
      add_claim(state, r, *e, all);
    }
  }

  static void add_claim(const State& state, int r, std::size_t e, std::vector<Step>& all) {
    const Decision decision = inbox::claim(*state.events[e].row, kLimits);
    if (decision.moot) return;
    State next = state;
    Decision claimed = decision;
    claimed.run_hook = false;  // it has not run yet
    apply(next, e, claimed);
    Replica& own = next.replicas[at(r)];
    own.phase = decision.run_hook ? Replica::Phase::gives_up : Replica::Phase::claimed;
    own.event = static_cast<int>(e);
    own.claim = decision.row.claim;
    all.push_back({name(r) + "claims " + std::to_string(e), next, {}});
  }

  void add_delivery(const State& state, int r, std::vector<Step>& all) const {
    State next = state;
    Replica& own = next.replicas[at(r)];
    OneEvent& event = next.events[at(own.event)];
    const auto add = [&](const std::string& what, const std::string& wrong = {}) {
      all.push_back({name(r) + what, next, wrong});
    };
    switch (own.progress.next()) {
      case DeliveryProgress::Step::insert: {
        if (event.ledger_lock != kNobody && event.ledger_lock != r) return;  // it waits
        own.decision = event.later_version ? inbox::bury(event.ledger)
                                           : inbox::deliver(event.ledger, aggregate_of(state));
        if (!own.decision.moot) event.ledger_lock = r;
        own.progress.inserted(own.decision.run_handler);
        add(own.decision.moot          ? "finds a duplicate"
            : own.decision.run_handler ? "inserts the id"
                                       : "inserts the id, and keeps the event");
        break;
      }
      case DeliveryProgress::Step::handle: {
        const State before = next;
        own.effect = true;
        own.progress.handled(true);
        add("handles it", too_early(state, own.event));
        if (state.left.failures == 0) break;
        next = before;
        --next.left.failures;
        roll_back(next, r);
        own.progress.handled(false);
        add("handles it, and fails");
        break;
      }
      case DeliveryProgress::Step::commit: {
        const std::string wrong = own.effect ? too_early(state, own.event) : "";
        if (!own.decision.moot) {
          event.buried = event.later_version;
          apply(next, at(own.event), own.decision);
        }
        if (own.effect) ++event.effects;
        roll_back(next, r);
        own.progress.committed();
        add("commits", wrong);
        break;
      }
      case DeliveryProgress::Step::record: {
        if (event.ledger_lock != kNobody || event.row_lock != kNobody) return;
        apply(next, at(own.event),
              inbox::fail_delivery(event.ledger, kLimits, aggregate_of(state)));
        own.progress.recorded();
        add("records the failure");
        break;
      }
      case DeliveryProgress::Step::acknowledge:
        own.unsettled = false;
        own.progress.acknowledged();
        add("acknowledges it");
        break;
      case DeliveryProgress::Step::finished:
        roll_back(next, r);
        own.phase = Replica::Phase::idle;
        own.unsettled = false;
        own.event = kNobody;
        own.progress = {};
        add("has finished");
        break;
    }
  }

  static void let_go(Replica& own) {
    own.phase = Replica::Phase::idle;
    own.event = kNobody;
    own.claim = 0;
  }

  static void add_lock(const State& state, int r, std::vector<Step>& all) {
    State next = state;
    Replica& own = next.replicas[at(r)];
    OneEvent& event = next.events[at(own.event)];
    if (event.row_lock != kNobody) return;  // it waits
    if (inbox::retry(event.row, own.claim, Outcome::done).moot) {
      let_go(own);
      all.push_back({name(r) + "finds its claim overtaken", next, {}});
      return;
    }
    event.row_lock = r;
    ++event.runs;
    own.phase = Replica::Phase::works;
    all.push_back({name(r) + "locks the row and works", next, too_early(state, own.event)});
  }

  static void add_work(const State& state, int r, std::vector<Step>& all) {
    const int e = state.replicas[at(r)].event;
    State next = state;
    apply(next, at(e),
          inbox::retry(state.events[at(e)].row, state.replicas[at(r)].claim, Outcome::done));
    ++next.events[at(e)].effects;
    roll_back(next, r);
    let_go(next.replicas[at(r)]);
    all.push_back({name(r) + "commits the retry", next, too_early(state, e)});
    if (state.left.failures == 0) return;
    next = state;
    --next.left.failures;
    roll_back(next, r);
    next.replicas[at(r)].phase = Replica::Phase::failed;
    all.push_back({name(r) + "fails in the retry", next, {}});
  }

  static void add_failure(const State& state, int r, std::vector<Step>& all) {
    State next = state;
    Replica& own = next.replicas[at(r)];
    const OneEvent& event = state.events[at(own.event)];
    if (event.row_lock != kNobody) return;  // it waits
    apply(next, at(own.event), inbox::fail_retry(event.row, own.claim, {}, kLimits));
    let_go(own);
    all.push_back({name(r) + "records that the retry failed", next, {}});
  }

  void add_others(const State& state, std::vector<Step>& all) const {
    for (std::size_t e = 0; e < count(); ++e) {
      if (state.events[e].row_lock != kNobody) continue;
      if (const Decision decision = inbox::redrive(state.events[e].row);
          state.left.redrives > 0 && !decision.moot) {
        State next = state;
        --next.left.redrives;
        apply(next, e, decision);
        OneEvent& one = next.events[e];
        one.compensations = one.runs = 0;
        one.held = one.buried = one.later_version = false;
        all.push_back({"an operator redrives " + std::to_string(e), next, {}});
      }
      if (const Decision decision = inbox::discard(state.events[e].row);
          state.left.discards > 0 && !decision.moot) {
        State next = state;
        --next.left.discards;
        apply(next, e, decision);
        all.push_back({"an operator discards " + std::to_string(e), next, {}});
      }
      if (state.left.duplicates > 0) {
        State next = state;
        --next.left.duplicates;
        next.queue.push_back(static_cast<int>(e));
        all.push_back({"the relay sends " + std::to_string(e) + " again", next, {}});
      }
    }
  }

  OrderedSetting setting_;
};

}  // namespace

std::vector<OrderedSetting> ordered_settings() {
  return {{.title = "an ordered consumer beside operators",
           .crashes = 1,
           .redrives = 1,
           .discards = 1,
           .failures = 2},
          {.title = "an ordered consumer and its broker",
           .crashes = 1,
           .disconnects = 1,
           .duplicates = 1,
           .failures = 2},
          {.title = "an ordered consumer with three events",
           .events = 3,
           .disconnects = 1,
           .discards = 1,
           .failures = 2},
          {.title = "an ordered consumer that does not know a version",
           .events = 3,
           .redrives = 1,
           .failures = 2,
           .buried = 1}};
}

Report explore_ordered(const OrderedSetting& setting) {
  return Search(OrderedWorld(setting), setting.title, "no way leads to the end from here").run();
}

}  // namespace baton::explore
