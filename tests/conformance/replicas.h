#pragma once

// Several clients of one store, each behind a line of its own, in time that only the test moves.

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "baton/locks.h"
#include "conformance/harness.h"
#include "conformance/manual_clock.h"
#include "support/flaky_store.h"
#include "support/pending_calls_store.h"
#include "support/wait.h"

namespace baton::test {

using namespace std::chrono_literals;

inline const LockName kName{.subject = "report", .resources = {"2026-11"}};
inline const AcquireOptions kShort{.ttl = 3s};

class Replicas : public ::testing::Test {
 protected:
  using Line = FlakyStore::Line;
  using MakeStore = std::function<std::shared_ptr<LockStore>(std::shared_ptr<ManualTime>)>;

  explicit Replicas(const MakeStore& make) {
    auto counting = std::make_shared<PendingCallsStore>(make(time));
    store_calls = counting.get();
    store = std::move(counting);
  }

  // On the store that the program was built for.
  static std::shared_ptr<LockStore> fresh_store(std::shared_ptr<ManualTime> time) {
    return factory().fresh(std::move(time));
  }

  // A client whose last reference went in a callback is destroyed behind our back; it still needs
  // the clock and the store.
  void TearDown() override {
    EXPECT_TRUE(poll_until([&] { return store.use_count() == 1; }));
  }

  struct Replica {
    std::shared_ptr<FlakyStore> line;
    LockClient locks;
  };
  Replica replica(const std::string& owner, bool drops_wakeups = false) {
    auto line = std::make_shared<FlakyStore>(store, clock);
    if (drops_wakeups) line->drop_wakeups();
    return {line, LockClient::make(line, {.owner = owner, .clock = &clock}).value()};
  }

  // How many wait for the name; nothing if the store does not say, as on a busy machine.
  static std::optional<std::size_t> how_many_wait(Replica& by, const LockName& name) {
    const auto info = by.locks.get(name);
    return info ? std::optional<std::size_t>(info->waiting) : std::nullopt;
  }

  // Lets time pass until it is so. Only liveness is tested with it, never a point in time. Time
  // stands still while the store works on a call, but not for a call that hangs.
  template <typename Condition>
  bool eventually(Condition condition, Millis step = 5ms) {
    int polls_without_answer = 0;
    return poll_until(
        [&] {
          if (condition()) return true;
          polls_without_answer = store_calls->pending() == 0 ? 0 : polls_without_answer + 1;
          if (polls_without_answer > 0 && polls_without_answer < 2'000) return false;
          time->advance(step);
          return false;
        },
        60s, 1ms);
  }
  template <typename T>
  bool arrives(const std::future<T>& future) {
    return eventually([&] { return is_there(future); });
  }
  template <typename T>
  static bool is_there(const std::future<T>& future) {
    return future.wait_for(0s) == std::future_status::ready;
  }

  // `limit` is below the TTL under which the lock is still held, as far as the store knows.
  void expect_free_before(Millis limit, LockClient& asking) {
    const auto before = time->now();
    EXPECT_TRUE(eventually([&] { return asking.try_acquire(kName, kShort).has_value(); }));
    EXPECT_LT(time->now() - before, limit) << "only its TTL freed it";
  }

  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  ManualClock clock{time};
  std::shared_ptr<LockStore> store;
  PendingCallsStore* store_calls;  // at the bottom of `store`
};

}  // namespace baton::test
