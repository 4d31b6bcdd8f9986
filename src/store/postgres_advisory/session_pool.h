#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "store/postgres_advisory/session.h"

namespace baton::store::postgres_advisory {

// Sessions that have no lock and wait for none, so that a lock need not wait for a connection. Up
// to settings.max_idle_sessions are kept; the server ends those that nobody has used for a minute,
// so that there are as many as were used lately. Thread-safe.
class SessionPool {
 public:
  explicit SessionPool(const AdvisorySettings& settings) : settings_(settings) {}

  // Adds idle ones to `drawn` until there are `count`, opening what is missing, several at a time;
  // after `enough` no more than the first. Without the store's lock: it may take as long as the
  // server likes.
  Result<void> draw(std::size_t count, std::vector<std::unique_ptr<Session>>& drawn,
                    Deadline enough, Deadline deadline);

  void give_back(std::unique_ptr<Session> session);

 private:
  using Opened = Result<std::unique_ptr<Session>>;

  std::unique_ptr<Session> take_idle();
  std::vector<Opened> open_together(std::size_t count, Deadline deadline);

  const AdvisorySettings& settings_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Session>> idle_;  // the one that was used last is at the back
};

}  // namespace baton::store::postgres_advisory
