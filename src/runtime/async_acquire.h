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

// How an acquire went, for the observer.
struct AcquireTrace {
  bool waited = false;
  std::optional<std::chrono::nanoseconds> handover;
};

// An acquire_async() from the call to its callback. It may outlive the client.
struct AsyncAcquire {
  std::vector<LockName> set;
  AcquireOptions options;
  std::function<void(Result<Lease>)> then;
  std::shared_ptr<ClientObserver> observer;
  Clock* clock;
  Instant asked = clock->now();
  AcquireTrace trace;

  // The names for the lease: copied if an observer needs them too, else moved.
  std::vector<LockName> take_set() { return observer == nullptr ? std::move(set) : set; }

  // Tells the observer, then calls the callback.
  void finish(Result<Lease> result) {
    if (observer != nullptr && !set.empty()) {
      // NOLINTNEXTLINE(clang-analyzer-cplusplus.Move): moved from only if there is no observer
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
