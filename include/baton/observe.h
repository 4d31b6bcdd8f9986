#pragma once

// For metrics and logs, without changing anything: the traffic with a store, by a decorator around
// the seam of which stores know nothing, and what a client makes of it.

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "baton/name.h"
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

// An acquire that has come to its end. Of a set, `name` is the first.
struct AcquireEvent {
  const LockName& name;
  const Error* error = nullptr;  // none: granted
  Millis ttl{0};
  std::chrono::nanoseconds took{0};  // from asking to the answer, waiting included
  bool waited = false;
  std::optional<std::chrono::nanoseconds> handover;  // from being woken to holding it
};

struct RenewalEvent {
  const LockName& name;
  std::chrono::nanoseconds late{0};  // how long after a third of the ttl it was confirmed
};

enum class Loss : std::uint8_t {
  expired,  // it could not be renewed in time
  refused,  // the store said that it is gone or was broken
};

struct LossEvent {
  const LockName& name;
  Loss loss = Loss::expired;
};

struct ReleaseEvent {
  const LockName& name;
  const Error* error = nullptr;  // none: it is free for the next
  std::chrono::nanoseconds held{0};
  std::chrono::nanoseconds overlap{0};  // how long after its ttl: somebody else may have held it
};

// Told what a client's locks go through. Give one to ClientOptions::observer; without one nothing
// is measured. Called on the thread where it happens, while others wait for that thread: be quick,
// do not throw, and do not call the client.
class BATON_EXPORT ClientObserver {
 public:
  virtual ~ClientObserver() = default;
  virtual void called(const StoreCall&) {}
  virtual void waiting(const LockName&, int /*change*/) {}  // one more waits, or one less
  virtual void acquired(const AcquireEvent&) {}
  virtual void renewed(const RenewalEvent&) {}
  virtual void lost(const LossEvent&) {}
  virtual void released(const ReleaseEvent&) {}
};

// A call in one line for a log: verbs and outcomes, time, error. Names are shown, notes and
// metadata are not.
[[nodiscard]] BATON_EXPORT std::string describe(const StoreCall& call);

}  // namespace baton
