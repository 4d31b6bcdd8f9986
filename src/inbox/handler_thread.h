#pragma once

// The thread on which handlers run, so that another one can watch their time.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "baton/clock.h"

namespace baton::inbox {

// When the handler that runs now must have returned; none between handlers. Thread-safe.
class HandlerLimit {
 public:
  void set(Deadline by) { by_ = by.time_since_epoch().count(); }
  void clear() { by_ = kNone; }
  [[nodiscard]] std::optional<Deadline> get() const {
    const auto by = by_.load();
    if (by == kNone) return {};
    return Deadline(Deadline::duration(by));
  }

 private:
  static constexpr Deadline::rep kNone = -1;
  std::atomic<Deadline::rep> by_{kNone};
};

class HandlerThread {
 public:
  using Job = std::function<void()>;

  ~HandlerThread() { end(); }

  // Runs the job on the thread and waits for it. If a handler exceeds its limit, calls `overrun`
  // once and waits for `grace` more; then false, and the thread is left to itself: what the job
  // uses must belong to it. The next job gets a new thread.
  bool run(Job job, const HandlerLimit& limit, const std::function<void()>& overrun);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    Job job;
    bool busy = false;
    bool ended = false;
  };
  void begin();
  void end();
  static void work(State& state);

  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace baton::inbox
