#include "store/postgres_advisory/session_pool.h"

namespace baton::store::postgres_advisory {

Result<void> SessionPool::draw(std::size_t count, std::vector<std::unique_ptr<Session>>& drawn,
                               Deadline enough, Deadline deadline) {
  while (drawn.size() < count) {
    std::unique_ptr<Session> session;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        session = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (session && !session->still_there()) continue;
    if (!session) {
      if (!drawn.empty() && BootClock::now() >= enough) {
        return Error{.message = "no time was left for another session", .retryable = true};
      }
      auto opened = Session::open(settings_, deadline);
      if (!opened) return opened.error();
      session = std::move(*opened);
    }
    drawn.push_back(std::move(session));
  }
  return {};
}

void SessionPool::give_back(std::unique_ptr<Session> session) {
  if (!session || !session->usable()) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kKept) idle_.push_back(std::move(session));
}

}  // namespace baton::store::postgres_advisory
