#include "election/leader_monitor.h"

#include <utility>

namespace baton::election {

LeaderMonitor::LeaderMonitor(LockClient locks, const ElectorOptions& options, Clock& clock)
    : locks_(std::move(locks)), options_(options), clock_(clock) {}

void LeaderMonitor::start(const LockName& lock) {
  if (!options_.on_new_leader && !options_.on_overrun) return;
  lock_name_ = lock;
  thread_ = std::jthread([this](const std::stop_token& stop) { loop(stop); });
}

void LeaderMonitor::stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    changed_ = true;
    signal_.notify_all();
  }
  thread_.join();
}

void LeaderMonitor::began(std::shared_ptr<Term> term) {
  const std::lock_guard lock(mutex_);
  term_ = std::move(term);
  announced_ = false;
  reported_ = false;
  changed_ = true;
  signal_.notify_all();
}

void LeaderMonitor::term_ended() {
  const std::lock_guard lock(mutex_);
  changed_ = true;
  signal_.notify_all();
}

void LeaderMonitor::work_returned() {
  const std::lock_guard lock(mutex_);
  term_.reset();
  changed_ = true;
  signal_.notify_all();
}

void LeaderMonitor::loop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_ = false;
    const Instant next = check(lock);
    while (!changed_ && !stop.stop_requested() && clock_.now() < next) {
      clock_.wait(lock, signal_, next);
    }
  }
}

// Does what is due and says when to come back. Hooks are called without the lock.
Instant LeaderMonitor::check(std::unique_lock<std::mutex>& lock) {
  if (term_ != nullptr) return watch_work(lock);
  if (!options_.on_new_leader) return Instant::max();
  if (look_at_ <= clock_.now()) {
    look(lock);
    look_at_ = clock_.now() + options_.look_interval;
  }
  return look_at_;
}

Instant LeaderMonitor::watch_work(std::unique_lock<std::mutex>& lock) {
  const std::shared_ptr<Term> term = term_;
  if (!announced_) {
    announced_ = true;
    tell(lock, {.node = locks_.owner(),
                .term = term->lease().token(),
                .since = std::chrono::system_clock::now(),
                .metadata = options_.metadata,
                .grant = term->lease().grant()});
  }
  if (!term->ending() || reported_ || !options_.on_overrun || term_ != term) return Instant::max();
  const Instant due = term->ended_at() + options_.grace;
  if (clock_.now() < due) return due;
  reported_ = true;
  const Overrun overrun{
      .election = term->election(),
      .term = term->lease().token(),
      .why_ending = term->why(),
      .since_stop = std::chrono::duration_cast<Millis>(clock_.now() - term->ended_at()),
      .still_leads = term->lease().valid()};
  lock.unlock();
  options_.on_overrun(overrun);
  lock.lock();
  return Instant::max();
}

// The wait for the lock goes on through an outage of the store, so on_error is told of the first
// look that fails.
void LeaderMonitor::look(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const auto leader = leader_of(locks_, lock_name_, kLookTimeout);
  const bool failing = !leader;
  if (failing && !failing_ && options_.on_error) options_.on_error(leader.error());
  lock.lock();
  failing_ = failing;
  if (leader && *leader && term_ == nullptr) tell(lock, **leader);
}

void LeaderMonitor::tell(std::unique_lock<std::mutex>& lock, const Leader& leader) {
  if (!options_.on_new_leader || leader.term == last_seen_) return;
  last_seen_ = leader.term;
  lock.unlock();
  options_.on_new_leader(leader);
  lock.lock();
}

}  // namespace baton::election
