#include "schedule/engine.h"

#include <algorithm>

#include "node/wall_time.h"

namespace baton::schedule {
namespace {

constexpr Millis kLookGap{5};           // between two looks at all jobs, at least,
constexpr Millis kLookGapFew{20};       // and at a few: so that they go together,
constexpr int kLookShare = 10;          // and so many times what the last one took,
constexpr Millis kLookGapMost{500};     // but never more
constexpr Millis kGatherMost{40};       // how long an attempt waits for others, at most,
constexpr Millis kTickGap{20};          // between two ticks, where there are many jobs,
constexpr Millis kTickGapCrowded{5};    // and where most workers are busy
constexpr std::size_t kManyNames = 64;  // below this all are looked at
constexpr std::size_t kFewShare = 2;    // a few are this part of all at most
constexpr Millis kRefusedPause{50};
constexpr Millis kForbiddenPause{30'000};

// Nothing that asking again soon would change.
bool needs_a_person(Code code) {
  switch (code) {
    case Code::bad_name:
    case Code::bad_request:
    case Code::denied:
    case Code::unsupported:
    case Code::bad_store:
    case Code::unauthorized: return true;
    default: return false;
  }
}

const HolderInfo* holder_of(const LockInfo* info) {
  return info == nullptr || info->holders.empty() ? nullptr : &info->holders.front();
}

}  // namespace

const JobSpec* Engine::find(const std::string& job) const {
  const auto it = jobs_.find(job);
  return it == jobs_.end() ? nullptr : &it->second->spec;
}

void Engine::wake_at(Entry& entry, Instant at) {
  if (entry.wake != Instant::max()) queue_.erase({entry.wake, &entry});
  entry.wake = at;
  if (at != Instant::max()) queue_.emplace(at, &entry);
}

Engine::Tick Engine::tick(const Moment& moment) {
  Tick tick;
  if (moment.now < tick_after_) {
    tick.next = next();
    return tick;
  }
  if (!polling_ && moment.now >= poll_at_) polling_ = tick.poll = true;
  while (!queue_.empty() && queue_.begin()->first <= moment.now) {
    Entry& entry = *queue_.begin()->second;
    wake_at(entry, Instant::max());
    process(entry, moment, tick);
  }
  if (!tick.start.empty()) {
    start_after_ = moment.now + std::min<std::chrono::nanoseconds>(latency_, kGatherMost);
  }
  const bool crowded = busy_ * 2 >= settings_.workers;
  tick_after_ = moment.now + (crowded ? std::min(tick_gap(), kTickGapCrowded) : tick_gap());
  if (look_wanted_ && !looking_ && moment.now >= look_after_) {
    looking_ = tick.look = true;
    looking_at_ = tick.at = where_to_look();
    look_wanted_ = false;
    look_began_ = moment.now;
  }
  tick.next = next();
  return tick;
}

Instant Engine::next() const {
  Instant next = Instant::max();
  if (look_wanted_ && !looking_) next = look_after_;
  if (!queue_.empty()) next = std::min(next, queue_.begin()->first);
  if (!polling_) next = std::min(next, poll_at_);
  return std::max(next, tick_after_);
}

Millis Engine::tick_gap() const { return jobs_.size() < kManyNames ? Millis(0) : kTickGap; }

void Engine::process(Entry& entry, const Moment& moment, Tick& tick) {
  if (entry.state == State::running) return look_for_stuck(entry, moment);
  if (entry.state != State::idle || !fleet_known_) return;
  if (moment.now < entry.hold_off) return wake_at(entry, entry.hold_off);
  if (!offsets_given_) give_offsets();
  const Circumstances around{.moment = moment,
                             .control = entry.control,
                             .control_since = entry.control_since,
                             .place = position_for(entry),
                             .offset = entry.offset,
                             .rank_step = rank_step(),
                             .node = settings_.node};
  Decision decision = decide(entry.spec, entry.view, around);
  if (decision.due) {
    mark_due(entry, moment);
    tell_waiting(entry, moment);
  } else if (entry.due && entry.view.known) {
    close_due(entry, DueEnd::neither, moment);
  }
  if (decision.due && !entry.told && is_taken(entry)) {
    decision.at = std::min(decision.at, entry.due_since + entry.spec.options.try_for);
  }
  act(entry, std::move(decision), moment, tick);
}

void Engine::act(Entry& entry, Decision decision, const Moment& moment, Tick& tick) {
  switch (decision.what) {
    case Decision::What::wait: return wake_at(entry, decision.at);
    case Decision::What::look:
      if (decision.at > moment.now) return wake_at(entry, decision.at);
      return want_look(entry);
    case Decision::What::start: break;
  }
  if (moment.now < start_after_) return wake_at(entry, start_after_);
  // With no worker free the fire is left to others; but one that stays due is not forgotten.
  if (busy_ >= settings_.workers + stuck_) {
    entry.view.known = false;
    return wake_at(entry, moment.now + settings_.rank_step);
  }
  entry.state = State::asking;
  ++busy_;
  tick.start.push_back(std::move(*decision.attempt));
}

void Engine::answered(std::chrono::nanoseconds took) { latency_ += (took - latency_) / 16; }

void Engine::saw_jobs(const std::vector<LockInfo>& jobs, Instant began, const Moment& moment) {
  looking_ = false;
  look_fails_ = false;
  look_backoff_.reset();
  const auto took = std::chrono::floor<Millis>(moment.now - look_began_);
  look_after_ = moment.now + std::clamp(took * kLookShare,
                                        looking_at_.empty() ? kLookGap : kLookGapFew, kLookGapMost);
  std::unordered_map<std::string, const LockInfo*> found;
  found.reserve(jobs.size());
  for (const LockInfo& info : jobs) {
    if (auto job = job_of_key(info.key)) found.emplace(std::move(*job), &info);
  }
  const auto info_of = [&](const std::string& name) {
    const auto it = found.find(name);
    return it == found.end() ? nullptr : it->second;
  };
  if (looking_at_.empty()) {
    names_ = jobs.size();
    for (auto& [name, entry] : jobs_) take_in(*entry, info_of(name), began, moment);
  }
  for (const auto& name : looking_at_) {
    const auto it = jobs_.find(name);  // it may have been removed meanwhile
    if (it != jobs_.end()) take_in(*it->second, info_of(name), began, moment);
  }
  // A job that is still in wanting_ was not in this look, so another one is needed.
  look_wanted_ = !looking_at_.empty() && !wanting_.empty();
}

void Engine::want_look(const Entry& entry) {
  wanting_.insert(entry.spec.name);
  look_wanted_ = true;
}

void Engine::take_in(Entry& entry, const LockInfo* info, Instant began, const Moment& moment) {
  const bool changed = update(entry, info, began, moment);
  if (entry.state != State::idle) return;
  const bool wanted = wanting_.erase(entry.spec.name) > 0;
  if (changed || wanted) wake_at(entry, moment.now);
}

// Of many jobs few have changed since the last look: those that have reason to look are cheaper by
// name. Empty: look at all.
std::vector<std::string> Engine::where_to_look() const {
  const std::size_t most = std::min(settings_.few_jobs, names_ / kFewShare);
  if (names_ < kManyNames || wanting_.size() > most) return {};
  return {wanting_.begin(), wanting_.end()};
}

const std::string& Engine::text_of_note(Entry& entry) {
  if (!entry.text) entry.text = entry.view.note ? *to_note(*entry.view.note).text : std::string();
  return *entry.text;
}

// Takes in what a look found. Older than what we know by our own doing, it is not taken.
bool Engine::update(Entry& entry, const LockInfo* info, Instant began, const Moment& moment) {
  JobView& view = entry.view;
  if (entry.state != State::idle || (view.known && began < view.seen_at)) return false;
  const HolderInfo* holder = holder_of(info);
  const std::int64_t ordinal = info != nullptr ? info->note.ordinal : 0;
  const bool same_note = view.known && ordinal == view.ordinal &&
                         (info == nullptr || info->note.text == text_of_note(entry));
  const bool same_hold =
      view.held == (holder != nullptr) && view.parked == (holder != nullptr && holder->released);
  const bool changed = !view.known || !same_note || !same_hold;
  if (!same_note) {
    const std::int64_t before = view.note ? view.note->fire : 0;
    if (ordinal != view.ordinal) view.first_seen = moment.wall;
    view.note = info != nullptr ? from_note(info->note) : std::nullopt;
    entry.text = info != nullptr ? info->note.text : std::string();
    if (view.note && before > 0 && view.note->fire > before) {
      note_skipped(entry, *view.note, moment);
    }
  }
  heed_offset(entry);
  if (changed) view.since = moment.now;
  view.known = true;
  view.ordinal = ordinal;
  view.held = holder != nullptr;
  view.parked = holder != nullptr && holder->released;
  view.free_at = holder != nullptr ? began + holder->expires_in : began;
  view.seen_at = began;
  return changed;
}

void Engine::look_failed(const Moment& moment) {
  looking_ = false;
  look_wanted_ = true;
  look_after_ = moment.now + look_backoff_.next(0);
  if (std::exchange(look_fails_, true)) return;
  log(LogLevel::warning, "", "The store does not answer; fires wait until it does");
}

void Engine::saw_fleet(const std::vector<LockInfo>& controls, const std::vector<NodeInfo>& nodes,
                       const Moment& moment) {
  polling_ = false;
  poll_at_ = moment.now + settings_.poll_every;
  std::vector<std::string> live;
  for (const NodeInfo& node : nodes) {
    if (node.alive && node.role == settings_.role) live.push_back(node.id);
  }
  const bool all = !fleet_known_ || live != nodes_;
  nodes_ = std::move(live);
  fleet_known_ = true;
  for (const LockInfo& info : controls) {
    const auto job = job_of_key(info.key);
    const auto it = job ? jobs_.find(*job) : jobs_.end();
    if (it == jobs_.end() || it->second->control.version == info.note.ordinal) continue;
    it->second->control = control_from_note(info.note);
    it->second->control_since = moment.now;
    if (it->second->state == State::idle) wake_at(*it->second, moment.now);
  }
  if (!all) return;
  // Where a store frees the locks of a dead process at once, nobody need wait for the TTL.
  for (auto& [name, entry] : jobs_) {
    const auto& note = entry->view.note;
    if (note && note->started && !std::binary_search(nodes_.begin(), nodes_.end(), note->node)) {
      entry->view.known = false;
    }
  }
  rethink(moment);
}

void Engine::rethink(const Moment& moment) {
  for (auto& [name, entry] : jobs_) {
    if (entry->state == State::idle) wake_at(*entry, moment.now);
  }
}

void Engine::poll_failed(const Moment& moment) {
  polling_ = false;
  poll_at_ = moment.now + settings_.poll_every;
}

void Engine::began(const std::string& job, const Fire& fire, const Moment& moment) {
  Entry& entry = *jobs_.at(job);
  entry.state = State::running;
  entry.fire = fire;
  entry.run_began = moment.now;
  entry.stuck = false;
  mark_due(entry, moment);
  look_for_stuck(entry, moment);
}

void Engine::ended(const std::string& job) {
  Entry& entry = *jobs_.at(job);
  free_worker(entry);
  entry.state = State::ending;
  ++ending_;
}

void Engine::free_worker(Entry& entry) {
  if (entry.state == State::running && entry.stuck) --stuck_;
  entry.stuck = false;
  --busy_;
}

void Engine::end_attempt(Entry& entry) {
  if (entry.state == State::ending) {
    --ending_;
  } else {
    free_worker(entry);
  }
  entry.state = State::idle;
  wanting_.erase(entry.spec.name);
}

void Engine::refused(const std::string& job, const Error& error, const Moment& moment) {
  Entry& entry = *jobs_.at(job);
  end_attempt(entry);
  if (gone(entry, moment)) return;
  if (error.code == Code::superseded || error.code == Code::busy) {
    // Somebody was quicker. What the store says now decides.
    entry.backoff.reset();
    want_look(entry);
    if (error.code == Code::busy) entry.hold_off = moment.now + kRefusedPause;
    return;
  }
  const bool forbidden = needs_a_person(error.code);
  entry.hold_off = moment.now + (forbidden ? kForbiddenPause : entry.backoff.next(entry.spec.hash));
  entry.view.known = false;
  wake_at(entry, entry.hold_off);
  if (error.code == Code::cancelled) {
    return log(LogLevel::warning, job, "Interrupted while waiting for lock: " + job);
  }
  if (std::exchange(entry.told, true) && !forbidden) return;
  const JobNote note = entry.view.note.value_or(JobNote{});
  events_.emplace_back([fire = fire_of(entry, note)](SchedulerListener& listener) {
    listener.on_skipped(fire, SkipReason::unavailable);
  });
  log(forbidden ? LogLevel::error : LogLevel::warning, job,
      "Lock not acquired for: " + job + " (" + error.message + ")");
}

void Engine::done(const std::string& job, const JobNote& note, Millis parked_for,
                  const Moment& moment) {
  Entry& entry = *jobs_.at(job);
  const bool ran = entry.state == State::running || entry.state == State::ending;
  end_attempt(entry);
  entry.backoff.reset();
  JobView& view = entry.view;
  view.known = true;
  view.ordinal = note.ordinal();
  view.note = note;
  view.held = view.parked = parked_for > Millis(0);
  view.free_at = moment.now + parked_for;
  view.seen_at = view.since = moment.now;
  view.first_seen = moment.wall;
  entry.text.reset();
  heed_offset(entry);
  if (!ran && note.last && note.last->fire == note.fire && note.last->result == kCrashed) {
    tell_given_up(entry, note);
  }
  close_due(entry, ran ? DueEnd::locked : DueEnd::neither, moment);
  if (gone(entry, moment)) return;
  wake_at(entry, moment.now);
}

void Engine::lost(const std::string& job, const Moment& moment) {
  Entry& entry = *jobs_.at(job);
  end_attempt(entry);
  entry.view.known = false;
  close_due(entry, DueEnd::locked, moment);
  if (gone(entry, moment)) return;
  wake_at(entry, moment.now);
}

}  // namespace baton::schedule
