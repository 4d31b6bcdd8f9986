#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "store/postgres_advisory/session.h"

namespace baton::store::postgres_advisory {

// Sessions that have no lock and wait for none, so that a lock need not wait for a connection. A
// few are kept; the rest is closed. Thread-safe.
class SessionPool {
 public:
  explicit SessionPool(const AdvisorySettings& settings) : settings_(settings) {}

  // Adds idle ones to `drawn` until there are `count`, opening what is missing; after `enough` no
  // more than the first. Without the store's lock: it may take as long as the server likes.
  Result<void> draw(std::size_t count, std::vector<std::unique_ptr<Session>>& drawn,
                    Deadline enough, Deadline deadline);

  void give_back(std::unique_ptr<Session> session);

 private:
  static constexpr std::size_t kKept = 4;

  const AdvisorySettings& settings_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

}  // namespace baton::store::postgres_advisory
