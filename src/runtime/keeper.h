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
// Two threads: one renews, in batches, and may be held up by the store; the other only looks at
// the clock, so that lost() fires on time whatever the store does. Leases of one ttl stand in one
// list in the order in which their last renewals were sent, so the next one to renew and the next
// one to end are at the front. Replies come back nearly in that order, so a lease finds its place
// within a few steps from the back.
class Keeper {
 public:
  Keeper(LockStore& store, Clock& clock, ClientObserver* observer = nullptr);
  ~Keeper();

  void keep(HeldLease& lease);
  void drop(HeldLease& lease);

  // The lease got a full ttl by a request sent then; others, sent later, may have been answered
  // before. Gives when that was due.
  Instant renewed(HeldLease& lease, Instant sent);

  // A wake-up for a grant that nobody waits for: it may be held and broken, or converting.
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
  std::unordered_set<HeldLease*> poked_;  // to be renewed out of turn: perhaps broken
  Instant renew_at_ = Instant::max();     // what the threads sleep until: only an earlier
  Instant watch_at_ = Instant::max();     // time wakes them, so most leases wake nobody
  std::jthread renewer_;
  std::jthread watchdog_;
};

}  // namespace baton::runtime
