#include "store/redis/pool.h"

#include <algorithm>
#include <thread>

#include "store/common/jitter_bits.h"

namespace baton::store::redis {

Result<Connection*> ConnectionSet::to(const Endpoint& node, Deadline deadline) {
  auto& connection = connections_[node];
  if (connection && connection->still_there()) return connection.get();
  if (brief_) deadline = std::min<Deadline>(deadline, BootClock::now() + settings_.apply_limit / 4);
  for (;;) {
    connection.reset();
    if (brief_ && BootClock::now() < next_try_) {
      return Error{.code = Code::unavailable,
                   .message = "no connection to " + settings_.location,
                   .retryable = true};
    }
    auto opened = Connection::open(settings_, node, deadline);
    if (opened) {
      connection = std::move(*opened);
      backoff_.reset();
      return connection.get();
    }
    // A node that a cluster no longer has is not worth waiting for.
    if (!opened.error().retryable || node != settings_.node) return opened.error();
    const Millis pause = backoff_.next(jitter_bits());
    next_try_ = BootClock::now() + pause;
    if (brief_ || next_try_ >= deadline) {
      opened.error().retry_after = pause;
      return opened.error();
    }
    std::this_thread::sleep_for(pause);
  }
}

bool ConnectionSet::connected() const {
  const auto it = connections_.find(settings_.node);
  return it != connections_.end() && it->second && it->second->still_there();
}

}  // namespace baton::store::redis
