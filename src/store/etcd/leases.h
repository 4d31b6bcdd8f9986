#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "store/common/timed_mutex.h"
#include "store/etcd/gateway.h"

namespace baton::store::etcd {

// This process's leases: one for each TTL in use, a little longer than it, so that a grant can be
// attached without a word to the server as long as somebody kept the lease alive a moment ago.
class Leases {
 public:
  // No lease is shorter than `least`.
  Leases(Gateway& gateway, std::chrono::seconds least) : gateway_(gateway), least_(least) {}

  // The lease for claimants of this TTL; certain to live until then, if the TTL reaches so far.
  [[nodiscard]] Result<LeaseId> get(Millis ttl, Instant until, Deadline deadline);

  // Makes an existing one certain to live until then; false if it has ended.
  [[nodiscard]] Result<bool> keep(LeaseId id, Instant until, Deadline deadline);

  // One that ends after this span, and that nobody keeps alive.
  [[nodiscard]] Result<LeaseId> once(Millis span, Deadline deadline);

  // Any that lives, or 0.
  [[nodiscard]] LeaseId any() const;

  // Lets go of a lease that the server says is gone.
  void forget(LeaseId id);

  // All that are shared, to end them.
  [[nodiscard]] std::vector<LeaseId> all() const;

 private:
  struct SharedLease {
    TimedMutex mutex;  // held while the server is asked
    LeaseId id = 0;
    std::chrono::seconds ttl{0};
    Instant until{};  // it lives at least so long: counted from before the server was asked
  };
  // Everybody's own deadline counts, also while another one asks.
  [[nodiscard]] static Result<std::unique_lock<TimedMutex>> take(SharedLease& lease,
                                                                 Deadline deadline);
  std::shared_ptr<SharedLease> of(std::chrono::seconds ttl);
  std::shared_ptr<SharedLease> find(LeaseId id);
  [[nodiscard]] Result<bool> prolong(SharedLease& lease, Instant until, Deadline deadline);

  Gateway& gateway_;
  const std::chrono::seconds least_;
  mutable std::mutex mutex_;
  std::map<std::chrono::seconds, std::shared_ptr<SharedLease>> by_ttl_;
  std::map<LeaseId, std::shared_ptr<SharedLease>> by_id_;
};

}  // namespace baton::store::etcd
