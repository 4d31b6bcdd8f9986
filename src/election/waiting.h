#pragma once

#include <algorithm>
#include <string>

#include "baton/locks.h"

namespace baton::election {

inline Result<void> can_transfer(const LockClient& locks) {
  if (locks.capabilities().transfer) return {};
  return Error{.code = Code::unsupported,
               .message =
                   "this store cannot hand over to a named node; resign instead, and the "
                   "longest waiting candidate is next"};
}

// Whether `node` stands in the queue.
inline Result<void> waits(const LockInfo& info, const std::string& node) {
  if (std::any_of(info.waiters.begin(), info.waiters.end(),
                  [&](const WaiterInfo& waiter) { return waiter.owner == node; })) {
    return {};
  }
  std::string others;
  for (const WaiterInfo& waiter : info.waiters) {
    others += (others.empty() ? "" : ", ") + waiter.owner;
    if (others.size() > 200) break;
  }
  return Error{.code = Code::denied,
               .message = "'" + node + "' does not wait to lead; " +
                          (others.empty() ? "nobody does" : "these do: " + others)};
}

}  // namespace baton::election
