#include "store/etcd/leases.h"

#include <algorithm>

namespace baton::store::etcd {
namespace {

using std::chrono::seconds;

// etcd raises anything shorter to about this.
constexpr seconds kShortest{2};

// How long a lease lasts beyond the TTL of its claimants: so often it has to be kept alive while
// grants come and go.
constexpr Millis slack(Millis ttl) { return std::max(ttl / 10, Millis(1000)); }

seconds length(Millis ttl) {
  return std::max(std::chrono::ceil<seconds>(ttl + slack(ttl)), kShortest);
}

}  // namespace

std::shared_ptr<Leases::SharedLease> Leases::of(seconds ttl) {
  const std::lock_guard lock(mutex_);
  auto& lease = by_ttl_[ttl];
  if (!lease) {
    lease = std::make_shared<SharedLease>();
    lease->ttl = ttl;
  }
  return lease;
}

std::shared_ptr<Leases::SharedLease> Leases::find(LeaseId id) {
  const std::lock_guard lock(mutex_);
  const auto it = by_id_.find(id);
  return it == by_id_.end() ? nullptr : it->second;
}

Result<std::unique_lock<TimedMutex>> Leases::take(SharedLease& lease, Deadline deadline) {
  std::unique_lock lock(lease.mutex, std::defer_lock);
  if (lock.try_lock_for(std::max<BootClock::duration>(deadline - BootClock::now(), {}))) {
    return lock;
  }
  return Error{.code = Code::unavailable,
               .message = "etcd: no answer about a lease in time",
               .retryable = true};
}

// Inside the lease's own lock.
Result<bool> Leases::prolong(SharedLease& lease, Instant until, Deadline deadline) {
  if (lease.until >= until) return true;
  const Instant asked = BootClock::now();
  auto answer = gateway_.keep_alive(lease.id, deadline);
  if (!answer) return answer.error();
  if (answer->ttl <= seconds{0}) return false;
  lease.until = asked + answer->ttl;
  return true;
}

Result<LeaseId> Leases::get(Millis ttl, Instant until, Deadline deadline) {
  const auto lease = of(std::max(length(ttl), least_));
  const auto asking = take(*lease, deadline);
  if (!asking) return asking.error();
  if (lease->id != 0) {
    auto alive = prolong(*lease, until, deadline);
    if (!alive) return alive.error();
    if (*alive) return lease->id;
    forget(lease->id);
    lease->id = 0;
  }
  const Instant asked = BootClock::now();
  auto granted = gateway_.grant_lease(lease->ttl, deadline);
  if (!granted) return granted.error();
  lease->id = granted->id;
  lease->until = asked + granted->ttl;
  const std::lock_guard lock(mutex_);
  by_ttl_[lease->ttl] = lease;
  by_id_[lease->id] = lease;
  return lease->id;
}

Result<bool> Leases::keep(LeaseId id, Instant until, Deadline deadline) {
  const auto lease = find(id);
  if (!lease) {  // of another process, or one that has ended
    auto answer = gateway_.keep_alive(id, deadline);
    if (!answer) return answer.error();
    return answer->ttl > seconds{0};
  }
  const auto asking = take(*lease, deadline);
  if (!asking) return asking.error();
  if (lease->id != id) return false;
  auto alive = prolong(*lease, until, deadline);
  if (alive && !*alive) {
    forget(id);
    lease->id = 0;
  }
  return alive;
}

Result<LeaseId> Leases::once(Millis span, Deadline deadline) {
  auto granted = gateway_.grant_lease(
      std::max({std::chrono::ceil<seconds>(span), kShortest, least_}), deadline);
  if (!granted) return granted.error();
  return granted->id;
}

LeaseId Leases::any() const {
  std::vector<std::shared_ptr<SharedLease>> leases;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, lease] : by_id_) leases.push_back(lease);
  }
  for (const auto& lease : leases) {
    const std::unique_lock asking(lease->mutex, std::try_to_lock);
    if (asking && lease->until > BootClock::now() + Millis(500)) return lease->id;
  }
  return 0;
}

void Leases::forget(LeaseId id) {
  const std::lock_guard lock(mutex_);
  const auto it = by_id_.find(id);
  if (it == by_id_.end()) return;
  // The next get() makes a new one; a thread that is asking still shares the old one.
  for (auto& [ttl, lease] : by_ttl_) {
    if (lease == it->second) lease = nullptr;
  }
  by_id_.erase(it);
}

std::vector<LeaseId> Leases::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<LeaseId> ids;
  for (const auto& [id, lease] : by_id_) ids.push_back(id);
  return ids;
}

}  // namespace baton::store::etcd
