#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace baton::store {

// A mutex that is waited for no longer than one wants to. Not std::timed_mutex: the thread
// sanitizer of our compiler does not know the call behind it, and takes every lock for a race.
class TimedMutex {
 public:
  void lock() {
    std::unique_lock lock(mutex_);
    freed_.wait(lock, [this] { return !taken_; });
    taken_ = true;
  }
  bool try_lock() { return try_lock_for(std::chrono::nanoseconds(0)); }
  template <typename Rep, typename Period>
  bool try_lock_for(std::chrono::duration<Rep, Period> limit) {
    std::unique_lock lock(mutex_);
    if (!freed_.wait_for(lock, limit, [this] { return !taken_; })) return false;
    taken_ = true;
    return true;
  }
  void unlock() {
    {
      const std::lock_guard lock(mutex_);
      taken_ = false;
    }
    freed_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  bool taken_ = false;
};

}  // namespace baton::store
