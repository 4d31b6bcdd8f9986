#include "store/postgres/pool.h"

#include <algorithm>
#include <thread>

#include "store/common/jitter_bits.h"

namespace baton::store::postgres {

Result<void> Pool::Slot::open(Deadline deadline) {
  connection.reset();
  auto opened = Connection::open(settings_, deadline);
  if (opened) {
    connection = std::move(*opened);
    backoff_.reset();
    return {};
  }
  const Millis pause = backoff_.next(jitter_bits());
  next_try = BootClock::now() + pause;
  if (opened.error().retryable) opened.error().retry_after = pause;
  return opened.error();
}

Result<void> Pool::Slot::connect(Deadline deadline) {
  for (;;) {
    auto opened = open(deadline);
    if (opened || !opened.error().retryable || next_try >= deadline) return opened;
    std::this_thread::sleep_for(next_try - BootClock::now());
  }
}

void Pool::Slot::given_back() {
  if (connection && !connection->usable()) reaper_.bury(std::move(connection));
}

Result<Pool::Borrowed> Pool::take(Lane lane, Deadline deadline) {
  auto slot = slots_.take(lane, deadline);
  if (!slot) return slot.error();
  if ((*slot)->connected()) return Borrowed(std::move(*slot));
  // Opening a connection may take longer than the lease lasts: one short try, then a connection for
  // requests, and waiting for its own only if none of those is open either.
  if (lane == Lane::renewals) {
    const Instant now = BootClock::now();
    const Deadline limit = std::min<Deadline>(deadline, now + settings_.apply_limit / 4);
    if (now >= (*slot)->next_try && (*slot)->open(limit)) return Borrowed(std::move(*slot));
    auto shared = slots_.take(Lane::shared, deadline);
    if (shared) return Borrowed(std::move(*shared));
    if (BootClock::now() >= deadline) return shared.error();
  }
  if (auto connected = (*slot)->connect(deadline); !connected) return connected.error();
  return Borrowed(std::move(*slot));
}

void Pool::adopt(std::unique_ptr<Connection> connection) {
  if (auto slot = slots_.take(Lane::requests, BootClock::now())) {
    (*slot)->connection = std::move(connection);
  }
}

}  // namespace baton::store::postgres
