#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "store/postgres_advisory/server_queries.h"
#include "store/postgres_advisory/session_pool.h"
#include "store/postgres_advisory/session_table.h"

namespace baton::store::postgres_advisory {

// Keeps the grants of this process: they end by our clock, are handed over by the server, and are
// lost with their sessions. Not thread-safe: the store's lock guards it.
class Grants {
 public:
  Grants(const AdvisorySettings& settings, ServerQueries& queries, SessionPool& pool,
         std::function<StoreTime()> test_clock)
      : settings_(settings), queries_(queries), pool_(pool), test_clock_(std::move(test_clock)) {}

  [[nodiscard]] StoreTime now() const;
  [[nodiscard]] At at() const { return test_clock_ ? At(test_clock_()) : At{}; }
  [[nodiscard]] SessionTable& table() { return table_; }
  [[nodiscard]] SessionPool& pool() { return pool_; }

  // Ends what is over of a name and takes in what the server has handed over. Tells whether
  // anything has changed.
  bool settle(const std::string& key, Deadline deadline);

  // Makes a term of a lock that seems to be free, in two steps: those of a batch are all sent
  // before the first answer is waited for, so that their commits share the disk's flushes.
  struct Taking {
    LockRef lock;
    core::Claimant claimant;
    std::unique_ptr<Session> session;
  };
  Result<Taking> begin_take(LockRef lock, const core::Claimant& claimant,
                            std::optional<std::int64_t> version, std::unique_ptr<Session> session,
                            Deadline deadline);
  Result<TermReply> finish_take(Taking taking, Deadline deadline);
  Result<void> queue_up(LockRef lock, const core::Claimant& claimant, Millis queue_ttl,
                        Millis claim_within, std::unique_ptr<Session> session, Deadline deadline);

  // The longest that one session may be waited for, so that its silence does not cost the others
  // their leases. `holds` tells whether it has a lease itself.
  [[nodiscard]] Deadline patience(Deadline deadline, Session::CallKind asked, bool holds) const;

  // Ends a grant or a wait; settle() sees who is next. After an error the grant goes on if its
  // session does; else it ends with the session, when the server notices. The error is `lost` if
  // the session was silent, so that nothing could be written.
  Result<void> end(GrantEntry& entry, const NoteChange& change, bool park, Deadline deadline);

  // The same in two steps: those of a batch are all sent before the first answer is waited for.
  struct Ending {
    GrantEntry* entry = nullptr;  // none: it was lost, as `sent` says
    Result<void> sent;
  };
  Ending begin_end(GrantEntry& entry, const NoteChange& change, bool park, Deadline deadline);
  Result<void> finish_end(const Ending& ending, Deadline deadline);

  // The same whatever happens.
  void drop(GrantEntry& entry, const std::string& why, Deadline deadline);

  // Its session has gone, and the lock with it.
  void lose(GrantEntry& entry, const std::string& why);
  [[nodiscard]] std::string why_lost(GrantId grant) const;

  // Whether a grant that has ended may have done just that with its last request.
  [[nodiscard]] bool may_have_written(const Request& request) const;

  // The socket of this entry has something to say.
  void hear(GrantEntry& entry, Deadline deadline);

  // When the next grant or wait is over by itself.
  [[nodiscard]] StoreTime next_end() const;

  void wake(const GrantEntry& entry);
  [[nodiscard]] std::vector<core::Wake> take_wakes() { return std::exchange(wakes_, {}); }

 private:
  bool promote(SessionTable::Name& name, Deadline deadline);
  bool take_in(GrantEntry& entry, Session::Wait wait, Deadline deadline);
  bool take_handed(GrantEntry& entry, Deadline deadline);
  void wait_for_the_server(SessionTable::Name& name, Deadline deadline);
  Result<void> leave_queue(GrantEntry& entry, Deadline deadline);
  void remember(GrantId grant, const std::string& why, const Session& session);
  void take_failed(GrantId grant, const Error& error, const Session& session);

  struct LostGrant {
    std::string why;
    std::optional<NoteChange> unconfirmed_note;  // see Session::unconfirmed_note()
  };

  const AdvisorySettings& settings_;
  ServerQueries& queries_;
  SessionPool& pool_;
  const std::function<StoreTime()> test_clock_;
  SessionTable table_;
  std::vector<core::Wake> wakes_;
  std::map<GrantId, LostGrant> lost_grants_;
};

// at_least_for keeps the name taken even if its holder dies before.
[[nodiscard]] inline StoreTime first_expiry(const core::Claimant& claimant, StoreTime now) {
  return now + StoreTime(std::max(claimant.ttl, claimant.at_least_for));
}

}  // namespace baton::store::postgres_advisory
