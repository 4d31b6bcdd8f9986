#include "explore/consumer_world.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <optional>
#include <unordered_map>
#include <utility>

#include "inbox/decision.h"
#include "inbox/delivery_progress.h"

namespace baton::explore {
namespace {

using inbox::Decision;
using inbox::DeliveryProgress;
using inbox::Ledger;
using inbox::Outcome;
using inbox::Row;
using inbox::Status;

constexpr int kReplicas = 2;
constexpr int kNobody = -1;
constexpr Millis kPatience{1'000};
const inbox::RetryLimits kLimits{.max_retries = 2, .breaker_patience = kPatience};

// One event: what is true for one is true for all, since no decision looks at another.
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
  int waiting = 0;            // deliveries in hand that were not begun
  bool unsettled = false;     // the delivery that was begun is not acknowledged
  bool wrote_id = false;      // in the open transaction
  bool effect = false;        // likewise
  std::int64_t claim = 0;
};

struct State {
  int queue = 1;
  int broker_dead = 0;
  std::array<Replica, kReplicas> replicas{};
  Ledger ledger;
  Row row;
  int ledger_lock = kNobody;
  int row_lock = kNobody;
  int effects = 0;
  int compensations = 0;
  int runs = 0;  // of retries, since the event was put into the inbox or redriven
  bool patience_over = false;
  bool probe_counted = false;  // before that
  ConsumerSetting left;
};

struct Step {
  std::string what;
  State next;
};

class ConsumerWorld {
 public:
  explicit ConsumerWorld(const ConsumerSetting& setting) : setting_(setting) {}

  State start() const {
    State state;
    state.left = setting_;
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

  static std::string wrong_now(const State& state) {
    const bool has_row = state.row.has_value();
    const bool waits =
        has_row && (state.row->status == Status::retry || state.row->status == Status::held);
    const bool dead = has_row && state.row->status == Status::dead;
    if (state.effects > 1) return "the event has two effects";
    if (state.compensations > 1) return "it was given up twice";
    if (state.compensations > 0 && state.ledger == Outcome::done) return "done and compensated";
    if (state.runs > kLimits.max_retries) return "tried more often than allowed";
    if (state.probe_counted) return "a probe used an attempt while there was patience";
    if (dead && state.compensations == 0) return "DEAD without its hook";
    if (waits && state.ledger != Outcome::retrying) return "it waits, and the ledger disagrees";
    if (dead && state.ledger != Outcome::dead) return "it is DEAD, and the ledger disagrees";
    if (state.ledger == Outcome::retrying && !has_row) return "retrying without a row";
    if (state.ledger == Outcome::done && has_row) return "done with a row";
    if (state.ledger == Outcome::discarded && state.effects > 0)
      return "discarded after its effect";
    if (!state.ledger && !on_its_way(state)) return "the event is lost";
    return {};
  }

  static bool ended(const State& state) {
    return state.ledger == Outcome::done || state.ledger == Outcome::dead ||
           state.ledger == Outcome::discarded;
  }

  static std::string key(const State& state) {
    std::string key;
    const auto add = [&](std::int64_t number) {
      key += std::to_string(number);
      key += ',';
    };
    add(state.queue);
    add(state.broker_dead);
    for (const Replica& one : state.replicas) {
      key += static_cast<char>(one.phase);
      add(static_cast<int>(one.progress.next()));
      add(one.waiting);
      add(one.claim);
      add(one.connected + 2 * one.unsettled + 4 * one.wrote_id + 8 * one.effect);
    }
    add(state.ledger ? static_cast<int>(*state.ledger) : -1);
    add(state.row ? static_cast<int>(state.row->status) : -1);
    add(state.row ? state.row->retries : -1);
    add(state.row ? state.row->claim : -1);
    for (const int number :
         {state.ledger_lock, state.row_lock, state.effects, state.compensations, state.runs,
          state.left.crashes, state.left.disconnects, state.left.doubts, state.left.duplicates,
          state.left.dead_letters, state.left.redrives, state.left.discards,
          state.left.hook_failures, state.left.probes, state.left.late_probes, state.left.forgotten,
          state.patience_over + 2 * state.probe_counted}) {
      add(number);
    }
    return key;
  }

 private:
  static std::size_t at(int r) { return static_cast<std::size_t>(r); }
  static std::string name(int r) { return "replica " + std::to_string(r) + " "; }

  static bool on_its_way(const State& state) {
    if (state.queue + state.broker_dead > 0) return true;
    return std::any_of(state.replicas.begin(), state.replicas.end(), [](const Replica& one) {
      return one.connected && (one.waiting > 0 || one.unsettled);
    });
  }

  static void apply(State& state, const Decision& decision) {
    if (decision.moot) return;
    if (decision.ledger) state.ledger = decision.ledger;
    if (decision.rows == Decision::Rows::put) state.row = decision.row;
    if (decision.rows == Decision::Rows::erase) state.row.reset();
    if (decision.run_hook) ++state.compensations;
  }

  // The transaction of the replica is gone.
  static void roll_back(State& state, int r) {
    Replica& one = state.replicas[at(r)];
    one.wrote_id = one.effect = false;
    if (state.ledger_lock == r) state.ledger_lock = kNobody;
    if (state.row_lock == r) state.row_lock = kNobody;
  }

  static void give_back(State& state, int r) {
    Replica& one = state.replicas[at(r)];
    if (one.connected) state.queue += one.waiting + (one.unsettled ? 1 : 0);
    one.waiting = 0;
    one.unsettled = false;
  }

  void add_faults(const State& state, int r, std::vector<Step>& all) const {
    if (state.left.crashes > 0) {
      State next = state;
      --next.left.crashes;
      give_back(next, r);
      roll_back(next, r);
      next.replicas[at(r)] = {};
      all.push_back({name(r) + "dies and is started again", next});
    }
    const Replica& one = state.replicas[at(r)];
    if (state.left.disconnects > 0 && one.connected && (one.waiting > 0 || one.unsettled)) {
      State next = state;
      --next.left.disconnects;
      give_back(next, r);
      next.replicas[at(r)].connected = false;
      all.push_back({name(r) + "loses the broker", next});
    }
  }

  void add_idle(const State& state, int r, std::vector<Step>& all) const {
    const Replica& one = state.replicas[at(r)];
    if (!one.connected) {
      State next = state;
      next.replicas[at(r)].connected = true;
      all.push_back({name(r) + "finds the broker again", next});
    } else if (state.queue > 0 && one.waiting < 2) {
      State next = state;
      --next.queue;
      ++next.replicas[at(r)].waiting;
      all.push_back({name(r) + "takes a delivery", next});
    }
    if (one.waiting > 0) {
      State next = state;
      Replica& own = next.replicas[at(r)];
      --own.waiting;
      own.unsettled = true;
      own.progress = {};
      own.phase = Replica::Phase::delivery;
      all.push_back({name(r) + "begins with a delivery", next});
    }
    if (state.broker_dead > 0 && state.ledger_lock == kNobody && state.row_lock == kNobody) {
      State next = state;
      --next.broker_dead;
      apply(next, inbox::keep_first(state.ledger));
      all.push_back({name(r) + "moves a dead letter of the broker", next});
    }
    if (state.row && state.row_lock == kNobody) add_claim(state, r, all);
  }

  void add_claim(const State& state, int r, std::vector<Step>& all) const {
    const Decision decision = inbox::claim(*state.row, kLimits);
    if (decision.moot) return;
    State next = state;
    Decision claimed = decision;
    claimed.run_hook = false;  // it has not run yet
    apply(next, claimed);
    next.replicas[at(r)].phase =
        decision.run_hook ? Replica::Phase::gives_up : Replica::Phase::claimed;
    next.replicas[at(r)].claim = decision.row.claim;
    all.push_back(
        {name(r) + (decision.run_hook ? "claims it to give up" : "claims the retry"), next});
  }

  void add_hook_failure(const State& state, int r, std::int64_t claim,
                        std::vector<Step>& all) const {
    if (state.left.hook_failures == 0) return;
    State next = state;
    --next.left.hook_failures;
    apply(next, inbox::fail_hook(state.row, claim, kLimits));
    next.replicas[at(r)].phase = Replica::Phase::idle;
    all.push_back({name(r) + "gives up, and the hook fails", next});
  }

  void add_delivery(const State& state, int r, std::vector<Step>& all) const {
    State next = state;
    Replica& own = next.replicas[at(r)];
    const auto add = [&](const std::string& what) { all.push_back({name(r) + what, next}); };
    switch (own.progress.next()) {
      case DeliveryProgress::Step::insert: {
        if (state.ledger_lock != kNobody && state.ledger_lock != r) return;  // it waits
        const Decision decision = inbox::deliver(state.ledger);
        own.wrote_id = !decision.moot;
        if (own.wrote_id) next.ledger_lock = r;
        own.progress.inserted(decision.run_handler);
        add(own.wrote_id ? "inserts the id" : "finds a duplicate");
        break;
      }
      case DeliveryProgress::Step::handle: {
        const State before = next;
        if (!setting_.hopeless) {
          own.effect = true;
          own.progress.handled(true);
          add("handles it");
        }
        next = before;
        roll_back(next, r);
        own.progress.handled(false);
        add("handles it, and fails");
        break;
      }
      case DeliveryProgress::Step::commit: {
        const State before = next;
        if (own.wrote_id) next.ledger = inbox::deliver({}).ledger;
        if (own.effect) ++next.effects;
        roll_back(next, r);
        own.progress.committed();
        add("commits");
        if (state.left.doubts == 0) break;
        own.progress = before.replicas[at(r)].progress;
        own.progress.interrupted();
        --next.left.doubts;
        add("commits, and does not learn it");
        next = before;
        roll_back(next, r);
        own.progress.interrupted();
        --next.left.doubts;
        add("loses its transaction");
        break;
      }
      case DeliveryProgress::Step::record: {
        if (state.ledger_lock != kNobody || state.row_lock != kNobody) return;
        apply(next, inbox::fail_delivery(state.ledger, kLimits));
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
        add("has finished");
        break;
    }
  }

  void add_lock(const State& state, int r, std::vector<Step>& all) const {
    if (state.row_lock != kNobody) return;  // it waits
    State next = state;
    Replica& own = next.replicas[at(r)];
    if (inbox::retry(state.row, own.claim, Outcome::done).moot) {
      own.phase = Replica::Phase::idle;
      all.push_back({name(r) + "finds its claim overtaken", next});
      return;
    }
    next.row_lock = r;
    ++next.runs;
    own.phase = Replica::Phase::works;
    all.push_back({name(r) + "locks the row and works", next});
  }

  void add_work(const State& state, int r, std::vector<Step>& all) const {
    if (!setting_.hopeless) add_success(state, r, all);
    State next = state;
    roll_back(next, r);
    next.replicas[at(r)].phase = Replica::Phase::failed;
    all.push_back({name(r) + "fails in the retry", next});
  }

  void add_success(const State& state, int r, std::vector<Step>& all) const {
    State next = state;
    apply(next, inbox::retry(state.row, state.replicas[at(r)].claim, Outcome::done));
    ++next.effects;
    roll_back(next, r);
    next.replicas[at(r)].phase = Replica::Phase::idle;
    all.push_back({name(r) + "commits the retry", next});
    if (state.left.doubts == 0) return;
    next.replicas[at(r)].phase = Replica::Phase::claimed;
    --next.left.doubts;
    all.push_back({name(r) + "commits the retry, and does not learn it", next});
  }

  void add_failure(const State& state, int r, std::vector<Step>& all) const {
    if (state.row_lock != kNobody) return;  // it waits
    const std::int64_t claim = state.replicas[at(r)].claim;
    for (const bool probe : {false, true}) {
      const bool gives_up = state.replicas[at(r)].phase == Replica::Phase::gives_up;
      const auto budget =
          state.patience_over ? &ConsumerSetting::late_probes : &ConsumerSetting::probes;
      if (probe && (state.left.*budget == 0 || gives_up)) continue;
      if (!probe && setting_.hopeless && !gives_up) continue;
      const Millis in_trouble_for = state.patience_over ? kPatience : Millis(0);
      const Decision decision = inbox::fail_retry(
          state.row, claim, {.probe = probe, .in_trouble_for = in_trouble_for}, kLimits);
      State next = state;
      apply(next, decision);
      next.replicas[at(r)].phase = Replica::Phase::idle;
      if (probe) {
        if (!decision.moot) --(next.left.*budget);
        const bool given_back =
            !decision.moot && decision.row.retries == std::max(state.row->retries - 1, 0);
        if (given_back) --next.runs;
        next.probe_counted = !decision.moot && !given_back && !state.patience_over;
      }
      all.push_back(
          {name(r) + (probe ? "records that a probe failed" : "records the failure"), next});
      if (decision.run_hook) add_hook_failure(state, r, claim, all);
    }
  }

  void add_others(const State& state, std::vector<Step>& all) const {
    const auto add = [&](const std::string& what, int ConsumerSetting::*budget,
                         const Decision& decision, bool again) {
      if (state.left.*budget == 0 || decision.moot || state.row_lock != kNobody) return;
      State next = state;
      --(next.left.*budget);
      apply(next, decision);
      if (again) next.compensations = next.runs = 0;
      all.push_back({what, next});
    };
    if (setting_.hopeless && !state.patience_over && state.row) {
      State next = state;
      next.patience_over = true;
      all.push_back({"the patience with the event is over", next});
    }
    add("an operator redrives it", &ConsumerSetting::redrives, inbox::redrive(state.row), true);
    add("an operator discards it", &ConsumerSetting::discards, inbox::discard(state.row), false);
    if (state.left.duplicates > 0) {
      State next = state;
      --next.left.duplicates;
      ++next.queue;
      all.push_back({"the relay sends it again", next});
    }
    if (state.left.dead_letters > 0 && state.queue > 0) {
      State next = state;
      --next.left.dead_letters;
      --next.queue;
      ++next.broker_dead;
      all.push_back({"the broker gives up on a delivery", next});
    }
    // What is settled for good comes no more once the window has passed.
    const bool unsettled = state.ledger == Outcome::retrying || state.ledger == Outcome::dead;
    if (state.left.forgotten > 0 && unsettled && inbox::ages_out(*state.ledger)) {
      State next = state;
      --next.left.forgotten;
      next.ledger.reset();
      all.push_back({"the ledger forgets it", next});
    }
  }

  const ConsumerSetting setting_;
};

class Search {
 public:
  explicit Search(const ConsumerSetting& setting) : world_(setting) {
    report_.title = setting.title;
  }

  Report run() {
    const auto began = std::chrono::steady_clock::now();
    add(world_.start(), 0, "");
    for (std::size_t here = 0; here < known_.size() && report_.problem.empty(); ++here) {
      for (Step& step : world_.steps(known_[here].state)) {
        ++report_.transitions;
        add(std::move(step.next), here, std::move(step.what));
        if (!report_.problem.empty()) break;
      }
    }
    std::size_t told = known_.size() - 1;
    if (report_.problem.empty()) told = find_stuck().value_or(0);
    if (!report_.problem.empty()) {
      std::vector<std::string> way;
      for (; told != 0; told = known_[told].from) way.push_back(known_[told].what);
      for (auto it = way.rbegin(); it != way.rend(); ++it) report_.trace += "  " + *it + "\n";
    }
    report_.states = known_.size();
    report_.complete = report_.problem.empty();
    report_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return std::move(report_);
  }

 private:
  struct Known {
    State state;
    std::size_t from = 0;
    std::size_t depth = 0;
    std::string what;
    std::vector<std::size_t> before{};  // all states that lead here
  };

  void add(State state, std::size_t from, std::string what) {
    const auto [place, fresh] = index_.emplace(ConsumerWorld::key(state), known_.size());
    if (!fresh) {
      known_[place->second].before.push_back(from);
      return;
    }
    const std::size_t depth = known_.empty() ? 0 : known_[from].depth + 1;
    report_.depth = std::max(report_.depth, depth);
    report_.problem = ConsumerWorld::wrong_now(state);
    known_.push_back({std::move(state), from, depth, std::move(what), {from}});
  }

  // A state from which no way leads to the end.
  std::optional<std::size_t> find_stuck() {
    std::vector<bool> good(known_.size(), false);
    std::deque<std::size_t> open;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (!ConsumerWorld::ended(known_[i].state)) continue;
      good[i] = true;
      open.push_back(i);
    }
    while (!open.empty()) {
      const std::size_t here = open.front();
      open.pop_front();
      for (const std::size_t before : known_[here].before) {
        if (good[before]) continue;
        good[before] = true;
        open.push_back(before);
      }
    }
    for (std::size_t i = 0; i < good.size(); ++i) {
      if (good[i]) continue;
      report_.problem = "no way leads to the end from here";
      return i;
    }
    return {};
  }

  const ConsumerWorld world_;
  Report report_;
  std::unordered_map<std::string, std::size_t> index_;
  std::deque<Known> known_;
};

}  // namespace

std::vector<ConsumerSetting> consumer_settings() {
  return {{.title = "a consumer beside operators", .crashes = 1, .redrives = 1, .discards = 1},
          {.title = "a consumer and its broker",
           .crashes = 1,
           .disconnects = 1,
           .doubts = 1,
           .duplicates = 1,
           .forgotten = 1},
          {.title = "a consumer whose handlers and hooks fail",
           .crashes = 1,
           .duplicates = 1,
           .dead_letters = 1,
           .hook_failures = 1,
           .probes = 1},
          {.title = "a consumer with nothing but probes that fail",
           .crashes = 1,
           .hook_failures = 1,
           .probes = 2,
           .late_probes = 4,
           .hopeless = true}};
}

Report explore_consumer(const ConsumerSetting& setting) { return Search(setting).run(); }

}  // namespace baton::explore
