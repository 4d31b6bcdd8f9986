#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "baton/broker.h"
#include "harness/slices.h"

namespace baton::bench {

// Lets a relay or a consumer, which knows no pauses, take turns with its floor. What it asks of its
// broker waits until its turn begins, and its thread with it. A turn is over when nothing is
// unconfirmed or unsettled any more, as that of a floor is.
class Turns {
 public:
  // The measuring thread: one turn.
  [[nodiscard]] Slice run(std::chrono::milliseconds time);
  // Waits until the first turn can begin.
  void wait_until_ready();
  // No more turns: nothing waits any longer.
  void end();

  // The working thread.
  [[nodiscard]] bool is_over() const;
  void finish(std::uint64_t steps);  // until the next turn begins

 private:
  void wait_until_ready(std::unique_lock<std::mutex>& lock);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::chrono::steady_clock::time_point> until_;  // of the turn
  std::chrono::steady_clock::time_point finished_;
  std::uint64_t steps_ = 0;
  bool ready_ = false;
  bool ended_ = false;
};

// The broker behind it, in turns. Of the subscriptions only those of `queue` wait.
[[nodiscard]] std::shared_ptr<Broker> in_turns(std::shared_ptr<Broker> broker,
                                               std::shared_ptr<Turns> turns,
                                               std::string queue = "");

}  // namespace baton::bench
