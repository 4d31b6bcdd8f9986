#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "core/lock_table.h"
#include "store/postgres/connection.h"
#include "store/postgres_advisory/advisory_settings.h"

namespace baton::store::postgres_advisory {

using core::StoreTime;
using At = std::optional<StoreTime>;  // what the clock says instead of the server's, in tests

// Which lock, under which name and for whom.
struct LockRef {
  std::int64_t lock_key = 0;
  std::string key;
  GrantId grant;
  Mode mode = Mode::X;
};

// The outcome of a take, claim or heartbeat at the server.
enum class Took : std::uint8_t {
  taken = 0,
  not_free = 1,
  not_yet = 2,  // free, but somebody's time is not over: TermReply::ends
  superseded = 3,
  denied = 4,  // the schema has another version
  gone = 5,
  revoked = 6,  // TermReply::reason
};

struct TermReply {
  Took took = Took::gone;
  Token token = 0;
  Note note;
  StoreTime ends{0};
  std::string reason;
};

// One session with the server, for one grant at a time: it waits for the lock, has it, and proves
// with every heartbeat that its holder is alive. When it breaks, the lock has gone with it; it is
// never mended. Not thread-safe.
class Session {
 public:
  static Result<std::unique_ptr<Session>> open(const AdvisorySettings& settings, Deadline deadline);

  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] int socket() const { return connection_->socket(); }
  [[nodiscard]] bool usable() const { return connection_->usable(); }
  bool still_there() { return connection_->still_there(); }

  // Tries the lock, or with `handed` has it already, and makes it a term for `idle`: how long the
  // server lets the session be silent.
  Result<TermReply> take(const LockRef& lock, const core::Claimant& claimant,
                         std::optional<std::int64_t> version, bool handed, Millis idle, At at,
                         Deadline deadline);

  // The same in two steps: of many sessions all are asked before the first is waited for. After an
  // error the session is of no more use to anybody.
  Result<void> send_take(const LockRef& lock, const core::Claimant& claimant,
                         std::optional<std::int64_t> version, bool handed, Millis idle, At at,
                         Deadline deadline);
  Result<TermReply> finish_take(Deadline deadline);

  // A waiter that has taken its lock comes for it.
  Result<TermReply> claim(const LockRef& lock, const core::Claimant& claimant,
                          std::optional<std::int64_t> version, At at, Deadline deadline);

  // The heartbeat, in two steps: of many sessions all are sent before the first is waited for.
  // There is no answer yet if poll_beat() gives nothing. While one is missing, no other is sent.
  Result<void> send_beat(const LockRef& lock, const NoteChange& change, Deadline deadline);
  std::optional<Result<TermReply>> poll_beat();

  // Waits for the answer to a beat that nobody waited for any more. An error if it does not come.
  Result<void> catch_up(Deadline deadline);

  // Writes the note and lets go; with `park` the term goes on until its at-least-for time is over.
  // The session must have caught up. In two steps, as a take.
  Result<void> send_finish(const LockRef& lock, const NoteChange& change, bool park,
                           Deadline deadline);
  Result<void> await_finish(Deadline deadline);

  // Starts to wait for the lock in the server's queue, until it has it.
  Result<void> wait_for(const LockRef& lock, const core::Claimant& claimant, Millis claim_within,
                        Deadline deadline);

  enum class Wait : std::uint8_t { on, got_it, too_long, cancelled, broken };
  Wait poll_wait();
  Wait finish_wait(Deadline deadline);
  void wait_again();  // after too_long

  // How long the server took for its last answer: to a beat, or to what it has to write.
  enum class CallKind : std::uint8_t { to_look, to_write };
  [[nodiscard]] Millis last_took(CallKind asked) const {
    return asked == CallKind::to_look ? beat_took_ : std::max(beat_took_, write_took_);
  }

  // Reads notifications: the grants that somebody revokes. False if the session has gone.
  bool listen(std::vector<GrantId>& revoked);

  [[nodiscard]] const std::string& last_error() const { return last_error_; }

  // A change of the note that was sent and may or may not have been written.
  [[nodiscard]] const std::optional<NoteChange>& unconfirmed_note() const {
    return unconfirmed_note_;
  }

 private:
  Session(const AdvisorySettings& settings, std::unique_ptr<postgres::Connection> connection)
      : settings_(settings), connection_(std::move(connection)) {}

  Result<void> warm_up(Deadline deadline);
  void answered(const Result<postgres::Rows>& answer);
  void write(const NoteChange& change);
  void confirm_note(const Result<postgres::Rows>& answer);
  void wrote_since(Instant sent);
  Wait judge_wait(const Result<postgres::Rows>& result);
  [[nodiscard]] Millis timer(Millis span) const { return settings_.timers ? span : Millis{0}; }

  const AdvisorySettings& settings_;
  std::unique_ptr<postgres::Connection> connection_;
  int pid_ = 0;
  Instant take_sent_;
  bool unanswered_ = false;  // a beat is under way
  Instant beat_sent_;
  Millis beat_took_{0};
  Millis write_took_{0};
  bool warm_ = false;
  std::optional<NoteChange> unconfirmed_note_;
  std::string waiting_sql_;
  std::string last_error_;
};

}  // namespace baton::store::postgres_advisory
