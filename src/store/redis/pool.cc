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

std::optional<std::size_t> Pool::free_set(Lane lane) const {
  if (lane == Lane::renewals) return taken_[2] ? std::nullopt : std::optional<std::size_t>(2);
  for (std::size_t i = 0; i < 2; ++i) {
    if (!taken_[i] && (lane == Lane::requests || sets_[i].connected())) return i;
  }
  return std::nullopt;
}

Result<Pool::Borrowed> Pool::take(Lane lane, Deadline deadline) {
  std::unique_lock lock(mutex_);
  std::optional<std::size_t> found;
  while (!(found = free_set(lane))) {
    const bool hopeless = lane == Lane::shared && !taken_[0] && !taken_[1];
    const auto left = deadline - BootClock::now();
    if (hopeless || left <= left.zero()) {
      return Error{.code = Code::unavailable,
                   .message = "all connections to " + settings_.location + " are busy",
                   .retryable = true};
    }
    freed_.wait_for(lock, left);
  }
  taken_[*found] = true;
  return Borrowed(*this, *found);
}

void Pool::give_back(std::size_t index) {
  {
    const std::lock_guard lock(mutex_);
    taken_[index] = false;
  }
  freed_.notify_all();
}

}  // namespace baton::store::redis
