#pragma once

#include <array>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "baton/clock.h"
#include "baton/result.h"

namespace baton::store {

// Renewals have a connection of their own, so that a lease does not expire while its renewal waits
// behind other requests. While that one cannot be opened (the server takes no more connections, or
// this process has no descriptor left), renewals share those for requests.
enum class Lane { requests, renewals, shared };

// Two connections of a store for requests and one for renewals: slots, which say by connected()
// whether the server can be asked at once. What a slot has to do before others may have it, it does
// in given_back(). Thread-safe.
template <typename Slot>
class LanePool {
 public:
  // `args` make a slot.
  template <typename... Args>
  explicit LanePool(const std::string& location, Args&... args)
      : location_(location), slots_{Slot(args...), Slot(args...), Slot(args...)} {}
  LanePool(const LanePool&) = delete;
  LanePool& operator=(const LanePool&) = delete;

  // A slot for one caller, back in the pool at the end of the scope.
  class Borrowed {
   public:
    Borrowed(LanePool& pool, std::size_t index) : pool_(&pool), index_(index) {}
    Borrowed(Borrowed&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), index_(other.index_) {}
    Borrowed& operator=(Borrowed&&) = delete;
    ~Borrowed() {
      if (pool_ != nullptr) pool_->give_back(index_);
    }
    Slot& operator*() const { return pool_->slots_[index_]; }
    Slot* operator->() const { return &pool_->slots_[index_]; }

   private:
    LanePool* pool_;
    std::size_t index_;
  };

  // Waits for a free slot until the deadline. With Lane::shared: for one of requests that is
  // connected, and not at all if none is.
  Result<Borrowed> take(Lane lane, Deadline deadline) {
    std::unique_lock lock(mutex_);
    std::optional<std::size_t> found;
    while (!(found = free_slot(lane))) {
      const bool none_comes = lane == Lane::shared && !taken_[0] && !taken_[1];
      const auto left = deadline - BootClock::now();
      if (none_comes || left <= left.zero()) {
        return Error{.code = Code::unavailable,
                     .message = "all connections to " + location_ + " are busy",
                     .retryable = true};
      }
      freed_.wait_for(lock, left);
    }
    taken_[*found] = true;
    return Borrowed(*this, *found);
  }

 private:
  [[nodiscard]] std::optional<std::size_t> free_slot(Lane lane) const {
    const std::size_t from = lane == Lane::renewals ? 2 : 0;
    const std::size_t to = lane == Lane::renewals ? 3 : 2;
    for (std::size_t i = from; i < to; ++i) {
      if (!taken_[i] && (lane != Lane::shared || slots_[i].connected())) return i;
    }
    return std::nullopt;
  }

  void give_back(std::size_t index) {
    slots_[index].given_back();
    {
      const std::lock_guard lock(mutex_);
      taken_[index] = false;
    }
    freed_.notify_all();
  }

  const std::string& location_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::array<Slot, 3> slots_;
  std::array<bool, 3> taken_{};
};

}  // namespace baton::store
