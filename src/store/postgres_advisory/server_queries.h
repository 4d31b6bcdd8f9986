#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/lock_table.h"
#include "store/postgres/pool.h"
#include "store/postgres_advisory/session.h"

namespace baton::store::postgres_advisory {

// A name as the server shows it, with the sessions of everybody. Times are those of our own clock.
struct ServerView {
  struct Holding {
    core::Holder holder;
    int pid = 0;  // 0: its session has gone, but its time is not over
  };
  std::int64_t lock_key = 0;
  Note note;
  std::vector<Holding> holders;
  std::vector<core::Waiter> waiters;  // in the order of the server's queue
  std::int64_t schema_version = 0;
};

// Queries to the server beside the sessions that have locks. Thread-safe.
class ServerQueries {
 public:
  explicit ServerQueries(const AdvisorySettings& settings)
      : settings_(settings), pool_(settings.server) {}

  void adopt(std::unique_ptr<postgres::Connection> connection) {
    pool_.adopt(std::move(connection));
  }

  // `now` is our clock's; `at` what the server is to take for its own.
  Result<std::map<std::string, ServerView>> look(const std::vector<std::string>& keys,
                                                 StoreTime now, At at, Deadline deadline);

  // Up to `most` names behind `after` that may be held, waited for or, if `idle`, have a note.
  Result<std::vector<std::string>> names(const std::string& prefix, const std::string& after,
                                         bool idle, std::size_t most, Deadline deadline);

  Result<void> revoke(std::int64_t lock_key, const std::vector<GrantId>& grants,
                      const std::string& reason, Deadline deadline);
  Result<void> terminate(std::int64_t lock_key, const std::vector<GrantId>& grants,
                         const std::vector<int>& pids, Deadline deadline);

  // Takes a session out of the server's queue.
  Result<void> cancel(int pid, Deadline deadline);

  // Which of these sessions stand in the queue, and which of them have got the lock.
  Result<std::map<int, bool>> queue_of(const std::vector<int>& pids, Deadline deadline);

  // Whether a term of this grant was written, also if its session has ended since.
  Result<bool> has_term(const LockRef& lock, Deadline deadline);

  Result<void> sweep(Deadline deadline);

 private:
  Result<postgres::Rows> run(const postgres::Statement& statement, const postgres::Params& params,
                             Deadline deadline);

  const AdvisorySettings& settings_;
  postgres::Pool pool_;
};

}  // namespace baton::store::postgres_advisory
