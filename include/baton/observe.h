#pragma once

// Looks at the traffic with a store without changing it: a decorator around the seam, for metrics
// and logs. Stores know nothing of it.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "baton/store.h"

namespace baton {

// One call of LockStore::apply, after it has returned.
struct StoreCall {
  std::span<const Request> requests;
  std::span<const Reply> replies;  // one a request; none if the call failed
  const Error* error = nullptr;
  std::chrono::nanoseconds took{0};
};

// Called on the thread that called the store, before it goes on: be quick, do not throw.
using StoreObserver = std::function<void(const StoreCall&)>;

[[nodiscard]] BATON_EXPORT std::shared_ptr<LockStore> observed(std::shared_ptr<LockStore> store,
                                                               StoreObserver observer);

// Counters of one store, readable while it is in use. count() is a StoreObserver.
class BATON_EXPORT StoreCounters {
 public:
  void count(const StoreCall& call);

  [[nodiscard]] std::uint64_t calls() const { return calls_; }
  [[nodiscard]] std::uint64_t failed_calls() const { return failed_; }
  [[nodiscard]] std::uint64_t requests(Verb verb, Outcome outcome) const {
    return counts_[index(verb, outcome)];
  }
  [[nodiscard]] std::chrono::nanoseconds time_in_calls() const {
    return std::chrono::nanoseconds(nanoseconds_.load());
  }

 private:
  static constexpr std::size_t kVerbs = 8;
  static constexpr std::size_t kOutcomes = 10;
  static std::size_t index(Verb verb, Outcome outcome) {
    return static_cast<std::size_t>(verb) * kOutcomes + static_cast<std::size_t>(outcome);
  }

  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<std::int64_t> nanoseconds_{0};
  std::array<std::atomic<std::uint64_t>, kVerbs * kOutcomes> counts_{};
};

// A call in one line for a log: verbs and outcomes, time, error. Names are shown, notes and
// metadata are not.
[[nodiscard]] BATON_EXPORT std::string describe(const StoreCall& call);

}  // namespace baton
