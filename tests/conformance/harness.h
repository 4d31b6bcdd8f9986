#pragma once

// The conformance suite is the semantics: every store passes the same promises and answers like
// the core, request by request. A store joins by giving a StoreFactory.

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "baton/store_admin.h"
#include "core/lock_table.h"

namespace baton::test {

// Time that only a test moves. Shared by all clients of a store under test.
class ManualTime {
 public:
  [[nodiscard]] core::StoreTime now() const { return core::StoreTime(micros_.load()); }
  void advance(Millis by) { micros_ += core::StoreTime(by).count(); }

 private:
  std::atomic<std::int64_t> micros_{1'000'000'000'000};
};

class StoreFactory {
 public:
  virtual ~StoreFactory() = default;

  // An empty store on `time`. Whatever an earlier call gave is no longer used.
  virtual std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) = 0;

  // Puts this text in the place of what the last store keeps of a name. False: it keeps no
  // document.
  virtual bool damage(const std::string& /*key*/, const std::string& /*text*/) { return false; }

  // For the last store; null where damage() is false.
  virtual std::unique_ptr<StoreAdmin> admin() { return nullptr; }

  // The same with a long limit on each call, where the store has one: for thousands of calls of
  // which none may be late because the machine is busy.
  virtual std::unique_ptr<LockStore> fresh_with_long_limits(std::shared_ptr<ManualTime> time) {
    return fresh(std::move(time));
  }

  // How many random sequences the model test runs.
  [[nodiscard]] virtual int model_sequences() const = 0;
};

// Each store's test program defines it.
std::unique_ptr<StoreFactory> make_factory();
StoreFactory& factory();

inline GrantId grant(std::uint64_t number) { return {0xBA70, number}; }
inline Deadline soon() { return BootClock::now() + std::chrono::seconds(30); }

// Requests as short as the promises that use them.
inline constexpr Millis kTtl{10'000};
inline constexpr Millis kQueueTtl{5'000};
inline constexpr Millis kClaimWithin{1'000};

Request acquire(std::uint64_t grant_number, std::vector<Target> targets,
                Millis queue_ttl = Millis{0});
Request acquire(std::uint64_t grant_number, const std::string& key, Mode mode = Mode::X,
                Millis queue_ttl = Millis{0});
Request same_targets(Verb verb, const Request& request);

std::string describe(const Request& request);
std::string describe(const Reply& reply);

}  // namespace baton::test
