#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "baton/clock.h"
#include "baton/store.h"
#include "runtime/held_lease.h"

namespace baton::runtime {

// Keeps every lease of a client alive, or ends it in time.
//
// Two threads: the renewer sends renewals in batches and may be held up by the store; the watchdog
// only looks at the clock, so that lost() fires on time whatever the store does. The leases of one
// TTL are in one list, in the order in which their last renewals were sent: the next one to renew
// and the next one to end are at the front. Replies arrive nearly in that order, so a renewed lease
// finds its new place within a few steps from the back.
class Keeper {
 public:
  Keeper(LockStore& store, Clock& clock, ClientObserver* observer = nullptr);
  ~Keeper();

  void keep(HeldLease& lease);
  void drop(HeldLease& lease);

  // A request sent at `sent` has renewed the lease for a full TTL. A later request may have been
  // answered before it. Returns when this renewal was due.
  Instant renewed(HeldLease& lease, Instant sent);

  // A wake-up for a grant that does not wait: its lease may be revoked or converting, so renew it
  // now and look again at a pending convert.
  void poke(GrantId grant);

  [[nodiscard]] bool on_own_thread() const;
  void stop();

 private:
  static constexpr std::size_t kMaxBatch = 1000;

  struct List {
    HeldLease* front = nullptr;
    HeldLease* back = nullptr;
  };

  void insert(HeldLease& lease);
  void unlink(HeldLease& lease);
  void renew_loop(const std::stop_token& stop);
  void watch_loop(const std::stop_token& stop);
  static HeldLease* first_due(HeldLease* lease, Instant now, Instant& next);
  std::vector<std::shared_ptr<HeldLease>> due(Instant now, Instant& next);
  std::vector<std::shared_ptr<HeldLease>> over(Instant now, Instant& next);
  void renew(const std::vector<std::shared_ptr<HeldLease>>& leases);
  void tell_renewed(const HeldLease& lease, Instant due) const;
  void retry_later(const std::vector<std::shared_ptr<HeldLease>>& leases);

  LockStore& store_;
  Clock& clock_;
  ClientObserver* const observer_;
  std::mutex mutex_;
  std::condition_variable renew_signal_;
  std::condition_variable watch_signal_;
  std::map<Millis, List> lists_;
  std::unordered_map<GrantId, HeldLease*> by_grant_;
  std::unordered_set<HeldLease*> poked_;  // to be renewed out of turn: perhaps revoked
  Instant renew_at_ = Instant::max();     // the threads sleep until these times. Only an earlier
  Instant watch_at_ = Instant::max();     // time wakes them, so most new leases wake no thread
  std::jthread renewer_;
  std::jthread watchdog_;
};

}  // namespace baton::runtime
