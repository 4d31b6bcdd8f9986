#pragma once

#include <memory>
#include <optional>

#include "core/backoff.h"
#include "store/common/lane_pool.h"
#include "store/postgres/connection.h"
#include "store/postgres/reaper.h"

namespace baton::store::postgres {

// The connections of a store: two for requests and one for renewals. Each is opened when first
// needed, and again after a failure, with a growing pause. Thread-safe.
class Pool {
 public:
  explicit Pool(const Settings& settings)
      : settings_(settings), slots_(settings.location, settings, reaper_) {}

  // One connection for one caller, back in the pool at the end of the scope.
  class Borrowed;

  // Waits for a free connection and, if need be, for the server, until the deadline.
  Result<Borrowed> take(Lane lane, Deadline deadline);

  // Takes in a connection that the caller has opened already.
  void adopt(std::unique_ptr<Connection> connection);

 private:
  class Slot {
   public:
    Slot(const Settings& settings, Reaper& reaper) : settings_(settings), reaper_(reaper) {}

    [[nodiscard]] bool connected() const { return connection && connection->still_there(); }
    Result<void> open(Deadline deadline);     // tries once
    Result<void> connect(Deadline deadline);  // tries until the deadline
    void given_back();

    std::unique_ptr<Connection> connection;
    Instant next_try{};  // to open it again

   private:
    const Settings& settings_;
    Reaper& reaper_;
    core::Backoff backoff_{Millis(20), Millis(2000)};
  };
  using Slots = LanePool<Slot>;

  const Settings& settings_;
  Reaper reaper_;
  Slots slots_;
};

class Pool::Borrowed {
 public:
  explicit Borrowed(Slots::Borrowed slot) : slot_(std::move(slot)) {}
  Connection* operator->() const { return slot_->connection.get(); }
  Connection& operator*() const { return *slot_->connection; }

 private:
  Slots::Borrowed slot_;
};

}  // namespace baton::store::postgres
