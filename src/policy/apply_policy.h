#pragma once

// How a store gets another policy without two clients ever disagreeing about who conflicts.
//
// Every acquire names the version of the policy its client works by, and the store refuses any
// other. So, under the lock on the policy's own name:
//
//   version v ──conflicts stay the same────────────────────────────────▶ v+1, the new policy
//      │
//      └─some change──▶ v+1, the old one `draining`: nobody acquires ──▶ v+2, the new policy
//                          │  wait until the holders of the changed subjects are gone
//                          └── too long, or stopped: back to v, as if nothing had happened

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "baton/policy.h"
#include "baton/store.h"

namespace baton::policy {

struct DrainProgress {
  std::vector<LockInfo> in_the_way;  // still held, or waited for
  Millis waited{0};
};

struct ApplyPolicyOptions {
  std::string owner;       // who applies it, shown to others that try at the same time
  Millis timeout{60'000};  // for the holders of changed subjects to go
  bool replace = false;    // even a policy that cannot be read: then all locks must go first
  std::stop_token stop;
  std::function<void(const DrainProgress&)> progress;  // now and then while they do
  Clock* clock = nullptr;
};

struct AppliedPolicy {
  std::int64_t version = 0;          // that the store has now
  bool unchanged = false;            // it already had this policy
  std::vector<std::string> drained;  // subjects that had to be free of locks first; "": all
};

// Works on any store that keeps notes.
[[nodiscard]] BATON_EXPORT Result<AppliedPolicy> apply_policy(LockStore& store, Policy wanted,
                                                              const ApplyPolicyOptions& options);

// The policy a store has; version 0 if it has none.
[[nodiscard]] BATON_EXPORT Result<Policy> read_policy(LockStore& store, Deadline deadline);

}  // namespace baton::policy
