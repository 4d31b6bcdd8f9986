#include "store/postgres/pool.h"

#include <algorithm>
#include <thread>

#include "store/common/jitter_bits.h"

namespace baton::store::postgres {

Pool::~Pool() = default;

std::optional<std::size_t> Pool::free_slot(Lane lane) const {
  const std::size_t from = lane == Lane::renewals ? kRenewals : 0;
  const std::size_t to = lane == Lane::renewals ? slots_.size() : kRenewals;
  for (std::size_t i = from; i < to; ++i) {
    if (!slots_[i].taken) return i;
  }
  return std::nullopt;
}

Error Pool::all_busy() const {
  return Error{.code = Code::unavailable,
               .message = "all connections to " + settings_.location + " are busy",
               .retryable = true};
}

Result<Pool::Borrowed> Pool::take_slot(Lane lane, Deadline deadline) {
  std::unique_lock lock(mutex_);
  std::optional<std::size_t> found;
  while (!(found = free_slot(lane))) {
    const auto left = deadline - BootClock::now();
    if (left <= left.zero()) return all_busy();
    freed_.wait_for(lock, left);
  }
  slots_[*found].taken = true;
  return Borrowed(*this, *found);
}

Result<Pool::Borrowed> Pool::take(Lane lane, Deadline deadline) {
  auto borrowed = take_slot(lane, deadline);
  if (!borrowed) return borrowed;
  Slot& slot = slots_[borrowed->slot_];
  if (slot.connection && slot.connection->still_there()) return borrowed;
  if (lane == Lane::renewals) {
    if (auto shared = share_for_renewals(slot, *borrowed, deadline)) return std::move(*shared);
  }
  if (auto connected = connect(slot, deadline); !connected) return connected.error();
  return borrowed;
}

// Opening a connection may take longer than the lease lasts: one short try, then a connection for
// requests; nothing if none of those is open either.
std::optional<Result<Pool::Borrowed>> Pool::share_for_renewals(Slot& own, Borrowed& borrowed,
                                                               Deadline deadline) {
  const Instant now = BootClock::now();
  if (now >= own.next_try) {
    const Deadline limit = std::min<Deadline>(deadline, now + settings_.apply_limit / 4);
    if (open(own, limit)) return std::move(borrowed);
  }
  return take_connected(deadline);
}

// One of the connections for requests that is open; nothing if none is.
std::optional<Result<Pool::Borrowed>> Pool::take_connected(Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (;;) {
    bool may_come = false;
    for (std::size_t i = 0; i < kRenewals; ++i) {
      Slot& slot = slots_[i];
      may_come = may_come || slot.taken;
      if (slot.taken || !slot.connection || !slot.connection->still_there()) continue;
      slot.taken = true;
      return Borrowed(*this, i);
    }
    if (!may_come) return std::nullopt;
    const auto left = deadline - BootClock::now();
    if (left <= left.zero()) return all_busy();
    freed_.wait_for(lock, left);
  }
}

// Tries once. The slot is taken, so no other thread uses it.
Result<void> Pool::open(Slot& slot, Deadline deadline) {
  slot.connection.reset();
  auto opened = Connection::open(settings_, deadline);
  if (opened) {
    slot.connection = std::move(*opened);
    slot.backoff.reset();
    return {};
  }
  const Millis pause = slot.backoff.next(jitter_bits());
  slot.next_try = BootClock::now() + pause;
  if (opened.error().retryable) opened.error().retry_after = pause;
  return opened.error();
}

Result<void> Pool::connect(Slot& slot, Deadline deadline) {
  for (;;) {
    auto opened = open(slot, deadline);
    if (opened || !opened.error().retryable || slot.next_try >= deadline) return opened;
    std::this_thread::sleep_for(slot.next_try - BootClock::now());
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
