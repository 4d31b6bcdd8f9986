#pragma once

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "baton/clock.h"

namespace baton::store::kubernetes {

// One lock per name, so that threads of this process do not lose to each other at the server.
class KeyLocks {
 public:
  class Lock {
   public:
    Lock(KeyLocks& locks, std::string key) : locks_(&locks), key_(std::move(key)) {}
    Lock(Lock&& other) noexcept
        : locks_(std::exchange(other.locks_, nullptr)), key_(std::move(other.key_)) {}
    Lock& operator=(Lock&&) = delete;
    ~Lock() {
      if (locks_ == nullptr) return;
      {
        const std::lock_guard lock(locks_->mutex_);
        locks_->taken_.erase(key_);
      }
      locks_->freed_.notify_all();
    }

   private:
    KeyLocks* locks_;
    std::string key_;
  };

  // Nothing if the deadline comes first.
  [[nodiscard]] std::optional<Lock> take(const std::string& key, Deadline deadline) {
    std::unique_lock lock(mutex_);
    while (taken_.contains(key)) {
      const auto left = deadline - BootClock::now();
      if (left <= BootClock::duration{0}) return std::nullopt;
      freed_.wait_for(lock, std::min<BootClock::duration>(left, Millis(100)));
    }
    taken_.insert(key);
    return Lock(*this, key);
  }

 private:
  std::mutex mutex_;
  std::condition_variable freed_;
  std::set<std::string> taken_;
};

}  // namespace baton::store::kubernetes
