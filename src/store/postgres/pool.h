#pragma once

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/backoff.h"
#include "store/postgres/connection.h"
#include "store/postgres/reaper.h"

namespace baton::store::postgres {

// Renewals have a connection of their own, so that a lease does not expire while its renewal waits
// behind other requests.
enum class Lane { requests, renewals };

// The connections of a store: two for requests and one for renewals. Each is opened when first
// needed, and again after a failure, with a growing pause. While the one for renewals cannot be
// opened (the server takes no more connections, or this process has no descriptor left), renewals
// use those for requests. Thread-safe.
class Pool {
 public:
  explicit Pool(const Settings& settings) : settings_(settings) {}
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // One connection for one caller, back in the pool at the end of the scope.
  class Borrowed {
   public:
    Borrowed(Pool& pool, std::size_t slot) : pool_(&pool), slot_(slot) {}
    Borrowed(Borrowed&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), slot_(other.slot_) {}
    Borrowed& operator=(Borrowed&&) = delete;
    ~Borrowed() {
      if (pool_ != nullptr) pool_->give_back(slot_);
    }
    Connection* operator->() const { return pool_->slots_[slot_].connection.get(); }
    Connection& operator*() const { return *pool_->slots_[slot_].connection; }

   private:
    friend Pool;
    Pool* pool_;
    std::size_t slot_;
  };

  // Waits for a free connection and, if need be, for the server, until the deadline.
  Result<Borrowed> take(Lane lane, Deadline deadline);

  // Takes in a connection that the caller has opened already.
  void adopt(std::unique_ptr<Connection> connection);

 private:
  struct Slot {
    std::unique_ptr<Connection> connection;
    bool taken = false;
    core::Backoff backoff{Millis(20), Millis(2000)};
    Instant next_try{};  // to open it again
  };
  static constexpr std::size_t kRenewals = 2;  // the slot of that lane; the others are for requests

  [[nodiscard]] std::optional<std::size_t> free_slot(Lane lane) const;
  [[nodiscard]] Error all_busy() const;
  Result<Borrowed> take_slot(Lane lane, Deadline deadline);
  std::optional<Result<Borrowed>> take_connected(Deadline deadline);
  std::optional<Result<Borrowed>> share_for_renewals(Slot& own, Borrowed& borrowed,
                                                     Deadline deadline);
  Result<void> open(Slot& slot, Deadline deadline);
  Result<void> connect(Slot& slot, Deadline deadline);
  void give_back(std::size_t slot);

  const Settings& settings_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::array<Slot, 3> slots_;
  Reaper reaper_;
};

}  // namespace baton::store::postgres
