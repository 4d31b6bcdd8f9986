#pragma once

// A fleet of schedulers in one thread: real engines and a real store, on time that only the test
// moves. What a process would do around its engine (look, ask, renew, run, release) is done here,
// a millisecond at a time, so that a run is the same every time, with crashes wherever a test wants
// them.

#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "core/trust.h"
#include "node/wall_time.h"
#include "schedule/engine.h"
#include "schedule/hash.h"
#include "store/memory/memory_store.h"

namespace baton::test {

using schedule::Attempt;
using schedule::Engine;
using schedule::JobNote;
using schedule::JobSpec;
using schedule::Moment;

struct Start {
  std::string job;
  std::int64_t fire = 0;
  std::string node;
  std::int64_t at = 0;  // milliseconds since the fleet began
  std::int64_t due = 0;
  int attempt = 1;
  bool manual = false;
  Token token = 0;
  std::int64_t end = -1;     // when the handler ended; -1: it did not
  std::int64_t free_at = 0;  // when nobody could believe any more that it runs
  bool done = false;         // written as done
};

class Fleet {
 public:
  explicit Fleet(std::uint64_t seed = 1) : random_(seed) {}

  Millis run_time{20};
  Millis ttl{5'000};  // of the nodes' registration
  Millis noise{0};    // each wake-up is late by up to so much
  Millis rank_step{25};
  std::size_t workers = 16;
  std::vector<Start> starts;
  std::vector<std::pair<std::string, SkipReason>> skips;
  std::vector<Cycle> cycles;
  std::vector<std::string> log;
  std::vector<std::string> stuck;

  void job(const std::string& name, Schedule schedule, JobOptions options = {}) {
    JobSpec spec{.name = name, .schedule = std::move(schedule), .options = std::move(options)};
    spec.hash = schedule::stable_hash(name);
    specs_.push_back(std::move(spec));
  }

  void join(const std::string& id, std::vector<std::string> only = {}, Millis clock_ahead = {}) {
    auto node = std::make_unique<SimNode>(
        SimNode{id, Engine({.node = id, .workers = workers, .rank_step = rank_step}), clock_ahead});
    for (const JobSpec& spec : specs_) {
      const auto& canary = spec.options.nodes;
      if (!spec.options.enabled) continue;
      if (!canary.empty() && std::find(canary.begin(), canary.end(), id) == canary.end()) continue;
      if (!only.empty() && std::find(only.begin(), only.end(), spec.name) == only.end()) continue;
      node->engine.add(spec, moment(*node));
    }
    listed_[id] = kForEver;
    nodes_[id] = std::move(node);
  }

  // Everything it holds stays with the store until it expires.
  void crash(const std::string& id) {
    for (auto& [grant, run] : nodes_.at(id)->runs) {
      starts[run.start].free_at = run.expires;
    }
    listed_[id] = now_ + ttl.count();
    nodes_.erase(id);
  }

  // Dies on a store that notices it: everything it holds is free at once.
  void vanish(const std::string& id) {
    for (auto& [grant, run] : nodes_.at(id)->runs) {
      Request free;
      free.verb = Verb::release;
      free.grant = grant;
      free.targets = {
          {key_of(schedule::job_name(starts[run.start].job, std::string(kDefaultRegion)))}};
      apply(free);
      starts[run.start].free_at = now_;
    }
    leave(id);
  }

  void leave(const std::string& id) {
    listed_.erase(id);
    nodes_.erase(id);
  }

  // Stopped, as by SIGSTOP; its leases run out meanwhile.
  void freeze(const std::string& id, Millis time) {
    nodes_.at(id)->frozen_until = now_ + time.count();
  }

  void command(const std::string& job, JobCommand command) {
    auto& note = controls_[job];
    ++note.version;
    if (command == JobCommand::pause) note.paused = true;
    if (command == JobCommand::resume) note.paused = false;
    if (command == JobCommand::run_now) ++note.runs;
    if (command == JobCommand::skip_next) ++note.skips;
  }

  // Takes the lock of a job by hand, as `baton run` could.
  void take(const std::string& job, Millis time) {
    Request request;
    request.verb = Verb::acquire;
    request.grant = {9, ++grants_};
    request.targets = {{key_of(schedule::job_name(job, std::string(kDefaultRegion)))}};
    request.owner = "somebody";
    request.ttl = time;
    if (apply(request).outcome != Outcome::granted) throw std::runtime_error(job + " is taken");
  }

  void run_for(Millis time) {
    const std::int64_t until = now_ + time.count();
    while (now_ < until) {
      step();
      ++now_;
    }
  }

  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] std::uint64_t looks() const { return looks_; }
  [[nodiscard]] std::uint64_t few_looks() const { return few_looks_; }
  [[nodiscard]] std::uint64_t asks() const { return asks_; }
  [[nodiscard]] std::vector<std::string> running_nodes() const {
    std::vector<std::string> ids;
    for (const auto& [id, node] : nodes_) {
      if (!node->runs.empty()) ids.push_back(id);
    }
    return ids;
  }
  [[nodiscard]] std::vector<std::string> node_ids() const {
    std::vector<std::string> ids;
    for (const auto& [id, node] : nodes_) ids.push_back(id);
    return ids;
  }
  [[nodiscard]] std::vector<Start> starts_of(const std::string& job) const {
    std::vector<Start> found;
    for (const Start& start : starts) {
      if (start.job == job) found.push_back(start);
    }
    return found;
  }
  std::uint64_t random(std::uint64_t below) { return random_() % below; }
  std::function<bool(const Start&)> fails;  // whether a handler throws
  std::optional<Code> refusal;              // what every request for a lock is answered
  std::function<bool(const Start&)> kills;  // whether it ends its process

  [[nodiscard]] JobNote note(const std::string& job) const {
    for (const LockInfo& info : all_jobs()) {
      if (schedule::job_of_key(info.key) == job) return schedule::from_note(info.note).value();
    }
    throw std::runtime_error("nobody has registered " + job);
  }

 private:
  static constexpr std::int64_t kForEver = INT64_MAX;
  static constexpr std::int64_t kEpoch = 1'800'000'000'000;  // of the wall clock, in ms

  struct Running {
    std::size_t start = 0;
    Attempt attempt;
    std::int64_t end = 0;
    std::int64_t renew = 0;
    std::int64_t expires = 0;  // in the store
    Millis ttl{0};
    bool lost = false;
  };
  struct SimNode {
    std::string id;
    Engine engine;
    Millis ahead{0};
    std::int64_t wake = 0;
    std::int64_t frozen_until = 0;
    std::map<GrantId, Running> runs;
  };

  class Recorder final : public SchedulerListener {
   public:
    explicit Recorder(Fleet& fleet) : fleet_(fleet) {}
    void on_skipped(const Fire& fire, SkipReason reason) override {
      fleet_.skips.emplace_back(fire.job, reason);
    }
    void on_stuck(const Fire& fire, Millis) override { fleet_.stuck.push_back(fire.job); }
    void on_cycle(const Cycle& cycle) override { fleet_.cycles.push_back(cycle); }
    void on_log(LogLevel level, const std::string&, const std::string& message) override {
      fleet_.log.push_back(std::string(to_string(level)) + " " + message);
    }

   private:
    Fleet& fleet_;
  };

  [[nodiscard]] Moment moment(const SimNode& node) const {
    return {Instant(Millis(now_ + 1'000'000)), node::from_millis(kEpoch + now_) + node.ahead};
  }
  [[nodiscard]] core::StoreTime store_time() const {
    return core::StoreTime(Millis(now_ + 1'000'000));
  }

  void step() {
    std::vector<SimNode*> order;
    for (auto& [id, node] : nodes_) order.push_back(node.get());
    std::shuffle(order.begin(), order.end(), random_);
    for (SimNode* node : order) {
      if (node->frozen_until > now_) continue;
      serve(*node);
      if (node->wake <= now_) run_tick(*node);
      Recorder recorder(*this);
      for (const auto& event : node->engine.take_events()) event(recorder);
    }
    for (const std::string& id : std::exchange(doomed_, {})) crash(id);
  }

  void run_tick(SimNode& node) {
    for (int i = 0; i < 10'000; ++i) {
      auto tick = node.engine.tick(moment(node));
      if (tick.poll) poll(node);
      if (tick.look) look(node, tick.at);
      for (Attempt& attempt : tick.start) ask(node, std::move(attempt));
      if (tick.poll || tick.look || !tick.start.empty()) continue;
      const auto next = std::chrono::ceil<Millis>(tick.next.time_since_epoch()).count() - 1'000'000;
      node.wake = std::max(next, now_ + 1);
      if (noise > Millis(0)) {
        node.wake +=
            static_cast<std::int64_t>(random(static_cast<std::uint64_t>(noise.count()) + 1));
      }
      return;
    }
    throw std::runtime_error("the engine never comes to rest");
  }

  void poll(SimNode& node) {
    std::vector<NodeInfo> live;
    for (const auto& [id, until] : listed_) {
      if (until > now_) live.push_back({.id = id, .alive = true});
    }
    std::vector<LockInfo> controls;
    for (const auto& [job, control] : controls_) {
      const NoteChange note = schedule::to_note(control);
      LockInfo info;
      info.key = key_of(schedule::control_name(job, std::string(kDefaultRegion)));
      info.note = {*note.ordinal, *note.text};
      controls.push_back(std::move(info));
    }
    node.engine.saw_fleet(controls, live, moment(node));
  }

  void look(SimNode& node, const std::vector<std::string>& few) {
    ++(few.empty() ? looks_ : few_looks_);
    auto jobs = all_jobs();
    if (!few.empty()) {
      std::erase_if(jobs, [&](const LockInfo& info) {
        return std::find(few.begin(), few.end(), *schedule::job_of_key(info.key)) == few.end();
      });
    }
    node.engine.saw_jobs(jobs, moment(node).now, moment(node));
  }

  [[nodiscard]] std::vector<LockInfo> all_jobs() const {
    Query query;
    query.subject = std::string(kJobSubject);
    query.idle = true;
    query.limit = 100'000;
    return std::move(store_->find(query, Instant::max()).value().items);
  }

  Reply apply(const Request& request) {
    return store_->apply({&request, 1}, Instant::max()).value().at(0);
  }

  void ask(SimNode& node, Attempt attempt) {
    ++asks_;
    if (refusal) return node.engine.refused(attempt.job, {.code = *refusal}, moment(node));
    const JobSpec& spec = *node.engine.find(attempt.job);
    const bool runs = attempt.kind == Attempt::Kind::run;
    Request request;
    request.verb = Verb::acquire;
    request.grant = {7, ++grants_};
    request.targets = {{key_of(schedule::job_name(attempt.job, std::string(kDefaultRegion)))}};
    request.owner = node.id;
    request.predicate = std::string(kJobPredicate);
    request.ttl = runs ? spec.options.lock_ttl : Millis(10'000);
    request.at_least_for = runs ? spec.options.at_least_for : Millis(0);
    request.if_ordinal_below = attempt.if_ordinal_below;
    request.change = schedule::to_note(attempt.note);
    const Reply reply = apply(request);
    if (reply.outcome != Outcome::granted) {
      const Error refused{
          .code = reply.outcome == Outcome::superseded ? Code::superseded : Code::busy,
          .retry_after = reply.retry_after};
      return node.engine.refused(attempt.job, refused, moment(node));
    }
    if (!runs) {
      request.verb = Verb::release;
      request.change = {};
      apply(request);
      return node.engine.done(attempt.job, attempt.note, Millis(0), moment(node));
    }
    JobNote& note = attempt.note;
    if (const auto found = schedule::from_note(reply.note);
        found && found->ordinal() == note.ordinal()) {
      note.attempt = found->attempt + 1;
    }
    starts.push_back({.job = attempt.job,
                      .fire = note.fire,
                      .node = node.id,
                      .at = now_,
                      .due = note.due - kEpoch,
                      .attempt = note.attempt,
                      .manual = note.manual,
                      .token = reply.tokens.at(0),
                      .free_at = kForEver});
    node.engine.began(attempt.job,
                      Fire{.job = attempt.job, .number = note.fire, .attempt = note.attempt},
                      moment(node));
    if (kills && kills(starts.back())) doomed_.insert(node.id);
    const Millis held = request.ttl;
    node.runs[request.grant] = {.start = starts.size() - 1,
                                .attempt = std::move(attempt),
                                .end = now_ + run_time.count(),
                                .renew = now_ + held.count() / 3,
                                .expires = now_ + held.count(),
                                .ttl = held};
  }

  // Renews and ends what runs here.
  void serve(SimNode& node) {
    for (auto it = node.runs.begin(); it != node.runs.end();) {
      Running& run = it->second;
      Start& start = starts[run.start];
      const auto trusted = run.expires - core::margin(run.ttl).count();
      if (!run.lost && now_ >= trusted) {
        run.lost = true;  // the handler hears of it and writes nothing more
        start.free_at = run.expires;
      }
      if (!run.lost && now_ >= run.renew && now_ < run.end) {
        Request renew;
        renew.verb = Verb::renew;
        renew.grant = it->first;
        renew.targets = {{key_of(schedule::job_name(start.job, std::string(kDefaultRegion)))}};
        if (apply(renew).outcome == Outcome::granted) run.expires = now_ + run.ttl.count();
        run.renew = now_ + run.ttl.count() / 3;
      }
      if (now_ < run.end && !run.lost) {
        ++it;
        continue;
      }
      finish(node, it->first, run);
      it = node.runs.erase(it);
    }
  }

  void finish(SimNode& node, GrantId grant, Running& run) {
    Start& start = starts[run.start];
    const JobSpec& spec = *node.engine.find(start.job);
    const bool failed = fails && fails(start);
    JobNote note = run.attempt.note;
    note.started = false;
    note.failures = failed ? note.failures + 1 : 0;
    note.last = schedule::PastRun{.fire = note.fire,
                                  .due = note.due,
                                  .started = note.began,
                                  .ended = node::to_millis(moment(node).wall),
                                  .node = node.id,
                                  .result = failed ? "failed" : "ok"};
    note.next = node::to_millis(schedule::next_due(spec, note));
    Request release;
    release.verb = Verb::release;
    release.grant = grant;
    release.targets = {{key_of(schedule::job_name(start.job, std::string(kDefaultRegion)))}};
    release.change = schedule::to_note(note);
    node.wake = now_;
    if (apply(release).outcome != Outcome::done) {
      return node.engine.lost(start.job, moment(node));
    }
    start.end = start.free_at = now_;
    start.done = true;
    const Millis parked = std::max(spec.options.at_least_for - Millis(now_ - start.at), Millis(0));
    node.engine.done(start.job, note, parked, moment(node));
  }

  std::mt19937_64 random_;
  std::int64_t now_ = 0;
  std::unique_ptr<LockStore> store_ = store::make_memory_store_at([this] { return store_time(); });
  std::vector<JobSpec> specs_;
  std::map<std::string, std::unique_ptr<SimNode>> nodes_;
  std::map<std::string, std::int64_t> listed_;  // in the registry until then
  std::map<std::string, schedule::ControlNote> controls_;
  std::set<std::string> doomed_;  // die at the end of this millisecond
  std::uint64_t grants_ = 0;
  std::uint64_t looks_ = 0;
  std::uint64_t few_looks_ = 0;
  std::uint64_t asks_ = 0;
};

}  // namespace baton::test
