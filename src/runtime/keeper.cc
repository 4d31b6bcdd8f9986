#include "runtime/keeper.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "core/trust.h"

namespace baton::runtime {
namespace {

// The threads look at their lists this often even if these are empty. So a lease that is due later
// need not wake them. Otherwise each of many short leases would wake a thread that finds the lease
// gone again.
constexpr Millis kLookEvery{1000};

Millis retry_pause(Millis ttl) { return std::clamp(ttl / 20, Millis(50), Millis(1000)); }

}  // namespace

Keeper::Keeper(LockStore& store, Clock& clock, ClientObserver* observer)
    : store_(store),
      clock_(clock),
      observer_(observer),
      renewer_([this](const std::stop_token& stop) { renew_loop(stop); }),
      watchdog_([this](const std::stop_token& stop) { watch_loop(stop); }) {}

Keeper::~Keeper() { stop(); }

void Keeper::stop() {
  for (std::jthread* thread : {&renewer_, &watchdog_}) {
    thread->request_stop();
    {
      const std::lock_guard lock(mutex_);
      renew_signal_.notify_all();
      watch_signal_.notify_all();
    }
    if (thread->joinable()) thread->join();
  }
}

bool Keeper::on_own_thread() const {
  const auto self = std::this_thread::get_id();
  return self == renewer_.get_id() || self == watchdog_.get_id();
}

void Keeper::insert(HeldLease& lease) {
  List& list = lists_[lease.ttl_];
  HeldLease* before = list.back;
  while (before != nullptr && before->sent_ > lease.sent_) before = before->previous_;
  lease.previous_ = before;
  lease.next_ = before != nullptr ? before->next_ : list.front;
  (before != nullptr ? before->next_ : list.front) = &lease;
  (lease.next_ != nullptr ? lease.next_->previous_ : list.back) = &lease;
}

void Keeper::unlink(HeldLease& lease) {
  List& list = lists_[lease.ttl_];
  (lease.previous_ != nullptr ? lease.previous_->next_ : list.front) = lease.next_;
  (lease.next_ != nullptr ? lease.next_->previous_ : list.back) = lease.previous_;
}

void Keeper::keep(HeldLease& lease) {
  const std::lock_guard lock(mutex_);
  lease.kept_ = true;
  by_grant_.emplace(lease.id_, &lease);
  insert(lease);
  if (const Instant due = lease.sent_ + core::renew_after(lease.ttl_); due < renew_at_) {
    renew_at_ = due;
    renew_signal_.notify_one();
  }
  if (const Instant end = lease.trusted_until(); end < watch_at_) {
    watch_at_ = end;
    watch_signal_.notify_one();
  }
}

void Keeper::drop(HeldLease& lease) {
  const std::lock_guard lock(mutex_);
  if (!lease.kept_) return;
  lease.kept_ = false;
  by_grant_.erase(lease.id_);
  poked_.erase(&lease);
  unlink(lease);
}

Instant Keeper::renewed(HeldLease& lease, Instant sent) {
  const std::lock_guard lock(mutex_);
  // Under the mutex, so that the watchdog sees the new time and the new place in the list together.
  lease.renewed(sent);
  const Instant due = lease.sent_ + core::renew_after(lease.ttl_);
  if (!lease.kept_ || sent <= lease.sent_) return due;
  lease.retry_at_ = Instant{};
  unlink(lease);
  lease.sent_ = sent;
  insert(lease);
  return due;
}

void Keeper::tell_renewed(const HeldLease& lease, Instant due) const {
  if (observer_ == nullptr) return;
  const auto late = std::max(clock_.now() - due, Instant::duration(0));
  observer_->renewed({lease.name(), late});
}

void Keeper::poke(GrantId grant) {
  const std::lock_guard lock(mutex_);
  const auto it = by_grant_.find(grant);
  if (it == by_grant_.end()) return;
  it->second->poke();
  poked_.insert(it->second);
  renew_at_ = Instant::min();
  renew_signal_.notify_one();
}

// The first lease to renew now, from this one on. `next` becomes the time of the next later renewal
// if that is earlier.
HeldLease* Keeper::first_due(HeldLease* lease, Instant now, Instant& next) {
  for (; lease != nullptr; lease = lease->next_) {
    const Instant at = std::max(lease->sent_ + core::renew_after(lease->ttl_), lease->retry_at_);
    if (at <= now) return lease;
    next = std::min(next, at);
    // The leases behind were renewed later, so none is due; only a lease that waits to retry may
    // hide one that is.
    if (lease->retry_at_ == Instant{}) return nullptr;
  }
  return nullptr;
}

// The leases to renew now: first those that were poked, then by the time when they end. `next` is
// when to look again.
std::vector<std::shared_ptr<HeldLease>> Keeper::due(Instant now, Instant& next) {
  std::vector<std::shared_ptr<HeldLease>> leases;
  const auto take = [&](HeldLease* lease) {
    if (auto kept = lease->weak_from_this().lock()) leases.push_back(std::move(kept));
  };
  std::unordered_set<const HeldLease*> out_of_turn;
  while (!poked_.empty() && leases.size() < kMaxBatch) {
    HeldLease* const lease = *poked_.begin();
    poked_.erase(poked_.begin());
    out_of_turn.insert(lease);
    take(lease);
  }
  next = Instant::max();
  using End = std::pair<Instant, HeldLease*>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;  // one of each list
  const auto offer = [&](HeldLease* from) {
    HeldLease* const lease = first_due(from, now, next);
    if (lease != nullptr) ends.emplace(lease->trusted_until(), lease);
  };
  for (auto& [ttl, list] : lists_) offer(list.front);
  while (!ends.empty() && leases.size() < kMaxBatch) {
    HeldLease* const lease = ends.top().second;
    ends.pop();
    if (!out_of_turn.contains(lease)) take(lease);
    offer(lease->next_);
  }
  if (!ends.empty() || !poked_.empty()) next = now;
  return leases;
}

std::vector<std::shared_ptr<HeldLease>> Keeper::over(Instant now, Instant& next) {
  std::vector<std::shared_ptr<HeldLease>> leases;
  next = Instant::max();
  for (auto& [ttl, list] : lists_) {
    for (HeldLease* lease = list.front; lease != nullptr; lease = lease->next_) {
      if (lease->trusted_until() > now) {
        next = std::min(next, lease->trusted_until());
        break;
      }
      if (auto kept = lease->weak_from_this().lock()) leases.push_back(std::move(kept));
    }
  }
  return leases;
}

void Keeper::renew_loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<std::shared_ptr<HeldLease>> leases;
    {
      std::unique_lock lock(mutex_);
      Instant next;
      const Instant now = clock_.now();
      leases = due(now, next);
      renew_at_ = std::min(next, now + kLookEvery);
      if (leases.empty()) {
        if (!stop.stop_requested()) clock_.wait(lock, renew_signal_, renew_at_);
        continue;
      }
    }
    renew(leases);
  }
}

void Keeper::renew(const std::vector<std::shared_ptr<HeldLease>>& leases) {
  std::vector<Request> batch;
  batch.reserve(leases.size());
  Instant latest = Instant::min();
  for (const auto& lease : leases) {
    batch.push_back(lease->renewal());
    latest = std::max(latest, lease->trusted_until());
  }
  const Instant sent = clock_.now();
  const Instant limit = sent + store_.capabilities().apply_limit;
  const auto replies = store_.apply(batch, std::min(limit, std::max(latest, sent + Millis(100))));
  if (!replies) return retry_later(leases);
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const Reply& reply = (*replies)[i];
    if (reply.outcome == Outcome::granted) {
      tell_renewed(*leases[i], renewed(*leases[i], sent));
    } else if (reply.outcome == Outcome::busy) {
      retry_later({leases[i]});
    }
  }
  // Last, because lose() runs the holders' callbacks: the renewed leases do not wait for those.
  for (std::size_t i = 0; i < leases.size(); ++i) {
    const Reply& reply = (*replies)[i];
    if (reply.outcome == Outcome::granted || reply.outcome == Outcome::busy) continue;
    leases[i]->lose(Loss::refused,
                    reply.message.empty() ? std::string(to_string(reply.outcome)) : reply.message);
    drop(*leases[i]);
  }
}

void Keeper::retry_later(const std::vector<std::shared_ptr<HeldLease>>& leases) {
  const std::lock_guard lock(mutex_);
  const Instant now = clock_.now();
  for (const auto& lease : leases) lease->retry_at_ = now + retry_pause(lease->ttl_);
}

void Keeper::watch_loop(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<std::shared_ptr<HeldLease>> leases;
    {
      std::unique_lock lock(mutex_);
      Instant next;
      const Instant now = clock_.now();
      leases = over(now, next);
      watch_at_ = std::min(next, now + kLookEvery);
      if (leases.empty()) {
        if (!stop.stop_requested()) clock_.wait(lock, watch_signal_, watch_at_);
        continue;
      }
    }
    for (const auto& lease : leases) {
      lease->lose(Loss::expired, "it could not be renewed in time");
      drop(*lease);
    }
  }
}

}  // namespace baton::runtime
