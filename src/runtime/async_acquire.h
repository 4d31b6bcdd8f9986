#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "baton/locks.h"
#include "baton/observe.h"

namespace baton::runtime {

// What an acquire went through, for the observer.
struct AcquireTrace {
  bool waited = false;
  std::optional<std::chrono::nanoseconds> handover;
};

// An acquire by callback, from the call to its end, which may come after that of the client.
struct AsyncAcquire {
  std::vector<LockName> set;
  AcquireOptions options;
  std::function<void(Result<Lease>)> then;
  std::shared_ptr<ClientObserver> observer;
  Clock* clock;
  Instant asked = clock->now();
  AcquireTrace trace;

  // For the lease; if there is an observer, it wants them too.
  std::vector<LockName> take_set() { return observer == nullptr ? std::move(set) : set; }

  // The observer hears of it first.
  void finish(Result<Lease> result) {
    if (observer != nullptr && !set.empty()) {
      // NOLINTNEXTLINE(clang-analyzer-cplusplus.Move): only without an observer it is taken
      observer->acquired({.name = set.front(),
                          .error = result ? nullptr : &result.error(),
                          .ttl = options.ttl,
                          .took = clock->now() - asked,
                          .waited = trace.waited,
                          .handover = trace.handover});
    }
    then(std::move(result));
  }
};

}  // namespace baton::runtime
