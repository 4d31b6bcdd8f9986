#include "store/postgres/pool.h"

#include <thread>

#include "store/common/some_bits.h"

namespace baton::store::postgres {

Pool::~Pool() = default;

std::optional<std::size_t> Pool::free_slot(Lane lane) const {
  if (lane == Lane::renewals) return slots_[2].taken ? std::nullopt : std::optional<std::size_t>(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!slots_[i].taken) return i;
  }
  return std::nullopt;
}

Result<Pool::Lease> Pool::take(Lane lane, Deadline deadline) {
  std::optional<std::size_t> found;
  {
    std::unique_lock lock(mutex_);
    while (!(found = free_slot(lane))) {
      const auto left = deadline - BootClock::now();
      if (left <= left.zero()) {
        return Error{.code = Code::unavailable,
                     .message = "all connections to " + settings_.location + " are busy",
                     .retryable = true};
      }
      freed_.wait_for(lock, left);
    }
    slots_[*found].taken = true;
  }
  Lease lease(*this, *found);
  Slot& slot = slots_[*found];
  if (slot.connection && slot.connection->still_there()) return lease;
  if (auto connected = connect(slot, deadline); !connected) return connected.error();
  return lease;
}

// The slot is taken, so it is this thread's alone.
Result<void> Pool::connect(Slot& slot, Deadline deadline) {
  for (;;) {
    slot.connection.reset();
    slot.former = {};
    auto opened = Connection::open(settings_, deadline);
    if (opened) {
      slot.connection = std::move(*opened);
      slot.backoff.reset();
      return {};
    }
    if (!opened.error().retryable) return opened.error();
    const Millis pause = slot.backoff.next(some_bits());
    if (BootClock::now() + pause >= deadline) {
      opened.error().retry_after = pause;
      return opened.error();
    }
    std::this_thread::sleep_for(pause);
  }
}

void Pool::give_back(std::size_t index) {
  Slot& slot = slots_[index];
  if (slot.connection && !slot.connection->usable()) {
    reaper_.bury(std::move(slot.connection));
  }
  {
    const std::lock_guard lock(mutex_);
    slot.taken = false;
  }
  freed_.notify_all();
}

void Pool::adopt(std::unique_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  slots_[0].connection = std::move(connection);
}

}  // namespace baton::store::postgres
