#include "relay/engine.h"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "outbox/outbox_table.h"

namespace baton::relay {
namespace {

constexpr std::size_t kMaxRowsOfALook = 1'000;
// Rows to be sent that are kept in memory. More would leave the caches of the processor before they
// are sent, which costs the relay a fifth of its time.
constexpr std::size_t kWindowsInMemory = 4;
constexpr std::size_t kMaxBodies = std::size_t{16} << 20;  // bytes in memory
constexpr std::size_t kLeastBodies = std::size_t{1} << 20;
constexpr Millis kHeads{1'000};
constexpr std::size_t kMaxFollowers = 200;  // of a lane: there must be room for new events
constexpr Millis kKeepAlive{1'000};
constexpr Millis kMaxConfirmWait{32};
constexpr Millis kMaxWait{200};  // with events in memory that cannot be published now

LookOptions look_options(const RelayOptions& options) {
  return {.max_attempts = options.max_attempts,
          .first_delay = options.first_delay,
          .on_failed = options.on_failed == RelayOnFailed::hold ? OnFailed::hold : OnFailed::skip};
}

}  // namespace

Engine::Lane::Lane(const Partition& of)
    : partition(of), owned{.number = static_cast<int>(of.number()), .token = of.token()} {}

Engine::Engine(std::unique_ptr<LaneTables> tables, std::shared_ptr<Broker> broker,
               RelayOptions options)
    : tables_(std::move(tables)),
      broker_(std::move(broker)),
      options_(std::move(options)),
      look_options_(look_options(options_)) {
  window_.max_messages = options_.window_messages;
  window_.max_bytes = options_.window_bytes;
}

Engine::~Engine() = default;

// --- other threads ---

void Engine::serve(Partition& partition, const std::stop_token& stop) {
  const auto lane = std::make_shared<Lane>(partition);
  {
    const std::lock_guard lock(mutex_);
    if (!running_) return;
    arriving_.push_back(lane);
  }
  interrupt_.raise();
  const std::stop_callback on_stop(stop, [&] {
    const bool lost = !lane->partition.lease().valid();
    {
      const std::lock_guard lock(mutex_);
      lane->ending = true;
      lane->lost = lane->lost || lost;
    }
    changed_.notify_all();
    interrupt_.raise();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return lane->over || lane->lost || lane->ending; });
  // A statement that hangs must not keep the lane from its next owner: the fence protects it.
  const auto limit = std::chrono::steady_clock::now() + options_.drain + Millis(1'000);
  changed_.wait_until(lock, limit, [&] { return lane->over || lane->lost; });
  lane->lost = lane->lost || !lane->over;
}

std::string Engine::identity() const {
  const std::lock_guard lock(mutex_);
  return identity_;
}

void Engine::wait_for_identity(const std::stop_token& stop) const {
  const std::stop_callback on_stop(stop, [&] {
    { const std::lock_guard lock(mutex_); }
    changed_.notify_all();
  });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !identity_.empty() || stop.stop_requested(); });
}

bool Engine::has_first_lane() const {
  const std::lock_guard lock(mutex_);
  return has_first_lane_;
}

RelayStats Engine::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

// --- its own thread ---

void Engine::run(const std::stop_token& stop) {
  const std::stop_callback on_stop(stop, [&] { interrupt_.raise(); });
  while (!stop.stop_requested()) {
    try {
      pass();
    } catch (const std::exception& problem) {
      database_trouble({.code = Code::unavailable, .message = problem.what(), .retryable = true});
    }
  }
  {
    const std::lock_guard lock(mutex_);
    running_ = false;
  }
  sync_lanes();
  while (!lanes_.empty()) finish(lanes_.back());
  tables_->close();
  publisher_.reset();
}

void Engine::pass() {
  interrupt_.clear();
  sync_lanes();
  if (!open_) connect();
  if (open_) {
    auto done = work();
    if (done) {
      database_trouble_.reset();
      database_backoff_ = Millis(0);
      if (!*done) {
        if (auto rested = rest(); !rested) done = rested.error();
      }
    }
    if (!done) database_trouble(done.error());
  } else {
    (void)can_publish(BootClock::now());  // shows how the broker is meanwhile
    (void)collect_confirms(BootClock::now());
    (void)tables_->pause(std::min<Instant>(connect_at_, BootClock::now() + kMaxWait),
                         interrupt_.file());
  }
  report();
}

Result<bool> Engine::work() {
  // Publishes events in memory before the database is asked, and again at the end, when confirms
  // have made room, so that the broker always has something to do. (A third time, between marks and
  // look, sends smaller batches and is slower.)
  bool done = false;
  for (const auto step : {&Engine::refill, &Engine::take_over_lanes, &Engine::write_marks,
                          &Engine::look, &Engine::read_heads, &Engine::refill}) {
    auto did = (this->*step)();
    if (!did) return did.error();
    done = done || *did;
  }
  // Only now, because the events do not wait for it.
  if (wakeup_.next() == WakeUp::Step::unlock) {
    if (auto unlocked = tables_->unlock(); !unlocked) return unlocked.error();
    wakeup_.unlocked();
  }
  if (auto kept = keep_house(); !kept) return kept.error();
  return done;
}

// --- lanes ---

void Engine::sync_lanes() {
  struct State {
    LanePtr lane;
    bool ending;
    bool lost;
  };
  std::vector<State> states;
  {
    const std::lock_guard lock(mutex_);
    lanes_.insert(lanes_.end(), arriving_.begin(), arriving_.end());
    arriving_.clear();
    for (const LanePtr& lane : lanes_) states.push_back({lane, lane->ending, lane->lost});
  }
  for (const State& state : states) {
    if (is_over(*state.lane, state.ending, state.lost)) finish(state.lane);
  }
}

bool Engine::is_over(Lane& lane, bool ending, bool lost) {
  if (lost || !lane.partition.lease().valid()) return true;
  if (!ending) return false;
  if (!lane.look) return true;
  const Instant now = BootClock::now();
  if (!lane.drain_until) lane.drain_until = now + std::min(options_.drain, options_.ttl / 2);
  return now >= *lane.drain_until || (lane.unconfirmed == 0 && lane.look->unwritten() == 0);
}

void Engine::finish(const LanePtr& lane) {
  const bool taken = lane->look.has_value();
  drop_memory(*lane);
  std::erase(lanes_, lane);
  {
    const std::lock_guard lock(mutex_);
    lane->over = true;
  }
  changed_.notify_all();
  if (taken) tell({.kind = RelayEvent::Kind::lane_left, .lane = lane->owned.number});
}

void Engine::drop_memory(Lane& lane) {
  lane.look.reset();
  lane.events.clear();
  lane.memory = ++last_memory_;
  lane.unconfirmed = 0;
}

void Engine::drop_fenced(const std::set<int>& fenced) {
  if (fenced.empty()) return;
  const auto lanes = lanes_;
  for (const LanePtr& lane : lanes) {
    if (fenced.contains(lane->owned.number)) finish(lane);
  }
}

std::vector<OwnedLane> Engine::owned() const {
  std::vector<OwnedLane> owned;
  for (const LanePtr& lane : lanes_) {
    if (lane->look) owned.push_back(lane->owned);
  }
  return owned;
}

// --- the database ---

void Engine::connect() {
  const Instant now = BootClock::now();
  if (now < connect_at_) return;
  if (auto opened = tables_->open(now + options_.statement_timeout); !opened) {
    return database_trouble(opened.error());
  }
  open_ = true;
  heads_at_ = show_at_ = now;
  sweep_at_ = now + options_.sweep_every;
  {
    const std::lock_guard lock(mutex_);
    identity_ = tables_->identity();
  }
  changed_.notify_all();
}

void Engine::database_trouble(const Error& error) {
  tables_->close();
  open_ = false;
  wakeup_ = WakeUp();
  unwritten_since_.reset();
  for (const LanePtr& lane : lanes_) drop_memory(*lane);
  database_trouble_ = error;
  database_backoff_ = std::clamp(database_backoff_ * 2, kFirstBackoff, kMaxBackoff);
  connect_at_ = BootClock::now() + database_backoff_;
}

Result<bool> Engine::take_over_lanes() {
  bool any = false;
  const auto lanes = lanes_;
  for (const LanePtr& lane : lanes) {
    if (lane->look || lane->drain_until) continue;
    auto taken = tables_->take_over(lane->owned);
    if (!taken && taken.error().code == Code::fenced) {
      if (options_.on_error) options_.on_error(taken.error());
      finish(lane);
      continue;
    }
    if (!taken) return taken.error();
    lane->look.emplace(std::move(taken->from), std::move(taken->in_index), look_options_);
    lane->memory = ++last_memory_;
    heads_at_ = BootClock::now();
    for (const auto& [route, overdue] : silent_routes_) {
      lane->look->shut(route, heads_at_ + kAskAgain);
    }
    any = true;
    tell({.kind = RelayEvent::Kind::lane_taken, .lane = lane->owned.number});
  }
  // The writers of a new lane notify only if its lock is taken too.
  if (any && wakeup_.holds_lock()) {
    if (auto unlocked = tables_->unlock(); !unlocked) return unlocked.error();
    wakeup_ = WakeUp();
  }
  return any;
}

Result<bool> Engine::look() {
  std::vector<LaneRead> reads;
  std::map<int, LanePtr> by_number;
  std::size_t bodies = 0;
  // When one lane needs rows, all read that have room: a statement costs the same for one or all.
  const std::size_t enough = kWindowsInMemory * window_.max_messages;
  const std::size_t share = enough / std::max<std::size_t>(lanes_.size(), 1);
  const bool needed = std::any_of(lanes_.begin(), lanes_.end(), [&](const LanePtr& lane) {
    return lane->look && lane->look->undecided() <= share / 2;
  });
  for (const LanePtr& lane : lanes_) {
    bodies += lane->events.bytes();
    if (!lane->look || lane->drain_until) continue;
    if (!needed || lane->look->undecided() > share) continue;
    if (const auto read = lane->look->next_read()) {
      reads.push_back({lane->owned, *read});
      by_number[lane->owned.number] = lane;
    }
  }
  Looked looked;
  if (!reads.empty()) {
    const std::size_t room = bodies < kMaxBodies ? kMaxBodies - bodies : 0;
    auto found = tables_->look(reads, kMaxRowsOfALook, std::max(room, kLeastBodies));
    if (!found) return found.error();
    looked = std::move(*found);
  }
  bool any = false;
  for (LanePage& page : looked.pages) {
    Lane& lane = *by_number.at(page.lane);
    const auto read = std::find_if(reads.begin(), reads.end(), [&](const LaneRead& one) {
      return one.lane.number == page.lane;
    });
    any = any || page.page.more || !page.page.rows.empty();
    lane.look->add(read->read, std::move(page.page));
    lane.events.add(std::move(page.events));
  }
  drop_fenced(looked.fenced);
  wakeup_.looked(any);
  return any;
}

Result<bool> Engine::read_heads() {
  const Instant began = BootClock::now();
  if (began < heads_at_) return false;
  std::vector<OwnedLane> lanes;
  for (const LanePtr& lane : lanes_) {
    if (lane->look && !lane->drain_until) lanes.push_back(lane->owned);
  }
  if (!lanes.empty()) {
    auto read = tables_->heads(lanes);
    if (!read) return read.error();
    for (const LaneHeads& heads : read->lanes) {
      for (const LanePtr& lane : lanes_) {
        if (lane->owned.number != heads.lane || !lane->look) continue;
        lane->look->add_heads(heads.heads, BootClock::now());
        if (auto added = add_followers(*lane, heads.heads); !added) return added.error();
      }
    }
    drop_fenced(read->fenced);
  }
  // A long index is read less often.
  const auto every = std::clamp(options_.first_delay / 4, Millis(20), kHeads);
  heads_took_ = BootClock::now() - began;
  heads_at_ = began + std::max<BootClock::duration>(every, heads_took_ * 20);
  return false;
}

Result<void> Engine::add_followers(Lane& lane, const std::vector<Head>& heads) {
  const auto aggregates = lane.look->flowing(heads);
  if (aggregates.empty()) return {};
  Position behind = std::numeric_limits<Position>::max();
  const std::set<std::string> flowing(aggregates.begin(), aggregates.end());
  for (const Head& head : heads) {
    if (flowing.contains(head.row.aggregate)) behind = std::min(behind, head.row.position);
  }
  auto found = tables_->followers(lane.owned, aggregates, behind, kMaxFollowers);
  if (!found) return found.error();
  lane.look->add_followers(std::move(*found));
  return {};
}

Result<void> Engine::keep_house() {
  const Instant now = BootClock::now();
  if (now >= alive_at_) {
    alive_at_ = now + kKeepAlive;
    if (auto alive = tables_->keep_alive(); !alive) return alive;
  }
  if (now >= show_at_) {
    show_at_ = now + outbox::kLaneHeartbeat;
    auto waiting = tables_->show(owned());
    if (!waiting) return waiting.error();
    counts_.waiting_pending = waiting->pending;
    counts_.waiting_held = waiting->held;
    counts_.waiting_failed = waiting->failed;
    counts_.oldest = waiting->oldest;
    if (!unwritten_since_) unwritten_since_ = now;  // a checkpoint may be left to save
  }
  if (now < sweep_at_) return {};
  sweep_at_ = now + options_.sweep_every;
  for (const OwnedLane& lane : owned()) {
    auto swept = tables_->sweep(lane, options_.sweep_every);
    if (!swept) return swept.error();
    if (*swept == 0) continue;
    counts_.swept += static_cast<std::uint64_t>(*swept);
    tell({.kind = RelayEvent::Kind::swept, .lane = lane.number, .count = *swept});
  }
  return {};
}

// --- nothing to do ---

bool Engine::idle() const {
  if (awaited() != 0 || unwritten_since_) return false;
  return std::all_of(lanes_.begin(), lanes_.end(), [](const LanePtr& lane) {
    return lane->look && !lane->drain_until && lane->look->undecided() == 0;
  });
}

Instant Engine::next_due() const {
  Instant next = std::min({heads_at_, show_at_, sweep_at_});
  if (!publisher_) next = std::min(next, publish_at_);
  for (const LanePtr& lane : lanes_) {
    if (!lane->look) continue;
    if (const auto at = lane->look->next_time()) next = std::min(next, *at);
  }
  return next;
}

Result<void> Engine::rest() {
  const Instant now = BootClock::now();
  if (awaited() != 0) {
    const bool any = collect_confirms(now + confirm_wait_);
    confirm_wait_ = any ? Millis(1) : std::min(confirm_wait_ * 2, kMaxConfirmWait);
    return {};
  }
  confirm_wait_ = Millis(1);
  if (idle()) return sleep();
  // Events that cannot be published now: their route or the broker is in trouble.
  auto until = std::min<Instant>(now + kMaxWait, next_due());
  if (publish_at_ > now) until = std::min(until, publish_at_);
  if (unwritten_since_) until = std::min<Instant>(until, now + Millis(5));
  auto paused = tables_->pause(std::max<Instant>(until, now + Millis(1)), interrupt_.file());
  if (!paused) return paused.error();
  return {};
}

Result<void> Engine::sleep() {
  const Instant now = BootClock::now();
  switch (wakeup_.next()) {
    case WakeUp::Step::look: return {};
    case WakeUp::Step::lock: {
      auto got = tables_->lock(owned());
      if (!got) return got.error();
      wakeup_.locked(*got);
      if (*got) return {};
      [[fallthrough]];  // the next pass looks, so the pause comes before it
    }
    case WakeUp::Step::pause: {
      auto changed = tables_->pause(now + wakeup_.pause(), interrupt_.file());
      if (!changed) return changed.error();
      if (*changed) {
        wakeup_ = WakeUp();
      } else {
        wakeup_.paused();
      }
      return {};
    }
    case WakeUp::Step::sleep: {
      const auto until = std::min<Instant>(now + kMaxSleep, next_due());
      if (auto slept = tables_->sleep(until, interrupt_.file()); !slept) return slept;
      wakeup_.slept();
      [[fallthrough]];
    }
    case WakeUp::Step::unlock: {
      if (auto unlocked = tables_->unlock(); !unlocked) return unlocked;
      wakeup_.unlocked();
    }
  }
  return {};
}

// --- what others see ---

void Engine::tell(RelayEvent event) const {
  if (options_.on_event) options_.on_event(event);
}

void Engine::report() {
  PublisherState state;
  if (publisher_) state = publisher_->state();
  const auto& trouble = database_trouble_ ? database_trouble_ : broker_trouble_;
  std::string message = trouble ? trouble->message : "";
  if (message.empty() && state.blocked) message = "the broker takes nothing now: " + state.why;
  const auto lanes = owned();
  {
    const std::lock_guard lock(mutex_);
    has_first_lane_ = std::any_of(lanes.begin(), lanes.end(),
                                  [](const OwnedLane& lane) { return lane.number == 0; });
    stats_ = counts_;
    stats_.database_connected = open_;
    stats_.broker_connected = state.connected;
    stats_.broker_blocked = state.blocked;
    stats_.trouble = message;
    stats_.lanes_owned = lanes.size();
    stats_.unconfirmed = awaited();
  }
  if (message == reported_) return;
  reported_ = message;
  if (message.empty()) return tell({.kind = RelayEvent::Kind::recovered});
  if (!options_.on_error) return;
  options_.on_error(
      trouble ? *trouble : Error{.code = Code::unavailable, .message = message, .retryable = true});
}

}  // namespace baton::relay
