#include "store/postgres_advisory/session_pool.h"

#include <algorithm>
#include <optional>
#include <system_error>
#include <thread>

namespace baton::store::postgres_advisory {
namespace {

// The server starts a process for each, so that more at a time would not be there any sooner.
constexpr std::size_t kOpenedTogether = 8;

}  // namespace

Result<void> SessionPool::draw(std::size_t count, std::vector<std::unique_ptr<Session>>& drawn,
                               Deadline enough, Deadline deadline) {
  while (drawn.size() < count) {
    auto session = take_idle();
    if (!session) break;
    drawn.push_back(std::move(session));
  }
  while (drawn.size() < count) {
    if (!drawn.empty() && BootClock::now() >= enough) {
      return Error{.message = "no time was left for another session", .retryable = true};
    }
    std::optional<Error> problem;
    for (auto& opened : open_together(std::min(count - drawn.size(), kOpenedTogether), deadline)) {
      if (opened) {
        drawn.push_back(std::move(*opened));
      } else {
        problem = opened.error();
      }
    }
    if (problem) return *problem;
  }
  return {};
}

std::unique_ptr<Session> SessionPool::take_idle() {
  for (;;) {
    std::unique_ptr<Session> session;
    {
      const std::lock_guard lock(mutex_);
      if (idle_.empty()) return nullptr;
      session = std::move(idle_.back());
      idle_.pop_back();
    }
    if (session->still_there()) return session;
  }
}

std::vector<SessionPool::Opened> SessionPool::open_together(std::size_t count, Deadline deadline) {
  std::vector<std::optional<Opened>> results(count);
  const auto open_one = [&](std::size_t i) { results[i] = Session::open(settings_, deadline); };
  {
    std::vector<std::jthread> others;
    std::size_t next = 1;
    try {
      others.reserve(count);
      while (next < count) {
        others.emplace_back([&open_one, i = next] { open_one(i); });
        ++next;
      }
    } catch (const std::system_error&) {
      // No thread is to be had: this one opens the rest, one after the other.
    }
    open_one(0);
    while (next < count) open_one(next++);
  }
  std::vector<Opened> opened;
  for (auto& result : results) opened.push_back(std::move(*result));
  return opened;
}

void SessionPool::give_back(std::unique_ptr<Session> session) {
  if (!session || !session->usable()) return;
  const std::lock_guard lock(mutex_);
  // The server has ended those at the front, if it has ended any.
  while (!idle_.empty() && !idle_.front()->still_there()) idle_.pop_front();
  if (idle_.size() < settings_.max_idle_sessions) idle_.push_back(std::move(session));
}

}  // namespace baton::store::postgres_advisory
