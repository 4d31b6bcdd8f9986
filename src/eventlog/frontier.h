#pragma once

// How far it is safe to read an event log on PostgreSQL. A pure class: what a look has seen goes
// in, a position comes out. No I/O, no clock, no threads; tests/explore/eventlog_world.h runs it in
// every order of appends, commits, prepared transactions, restarts and looks.
//
// Positions are drawn before their transactions commit, so a row can become visible below one that
// was visible before, and a reader that follows the highest position loses it. Every INSERT locks
// the log (RowExclusiveLock, until its transaction ends) before it draws a position. So a look is
// three statements of one session, in this order:
//
//   1. S: the last value of the sequence; one less if nothing was drawn yet (not is_called)
//   2. who holds RowExclusiveLock on the log or on one of its leaves (pg_locks)
//   3. the rows up to the frontier, at READ COMMITTED, so that all who had ended by 2 are visible
//
// A holder that look k sees first was not there when look k-1 listed the locks: it has drawn
// nothing up to S(k-1), and that is its bound for as long as it is there. S(0) is the progress that
// the reader has saved, the position of the last row that it has handled, also after it has
// reconnected: all memory is of one session. The frontier is the lowest bound, or S if nobody
// holds the lock. It never falls.
//
// Transactions are known by pg_locks.virtualtransaction, never by pid: a session has many of them
// one after the other, and a prepared one has none. The virtualtransaction of a prepared
// transaction changes when the server restarts, on old servers (before 14.1) as soon as it is
// prepared: a new holder that is prepared may be one that was known by another name, so it has the
// lowest bound of all that were known at the last look.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "baton/export.h"

namespace baton::eventlog {

using Position = std::int64_t;

// A transaction that has opened the log for writing.
struct Holder {
  std::string transaction;  // pg_locks.virtualtransaction
  int pid = 0;              // 0 if it is prepared
  bool prepared = false;
  std::string name;       // of a prepared transaction
  std::int64_t age_ms{};  // of the transaction; 0 if the server does not say
  bool operator==(const Holder&) const = default;
};

struct Look {
  Position last_value = 0;  // of the sequence, read first
  bool is_called = false;
  std::vector<Holder> holders;  // listed second
  bool operator==(const Look&) const = default;
};

class BATON_EXPORT Frontier {
 public:
  explicit Frontier(Position saved_progress)
      : last_drawn_(saved_progress), position_(saved_progress) {}

  // The new frontier: rows up to it are visible to a later statement, or never will be.
  Position look(const Look& look);

  [[nodiscard]] Position position() const { return position_; }
  // Of the last look: who keeps the frontier below what has been drawn, the one with the lowest
  // bound.
  [[nodiscard]] const std::optional<Holder>& stalled_by() const { return stalled_by_; }
  [[nodiscard]] Position last_drawn() const { return last_drawn_; }  // S

  // All that it remembers, on one line.
  [[nodiscard]] std::string describe() const;

 private:
  Position last_drawn_;                     // S of the last look
  Position position_;                       // the frontier
  std::map<std::string, Position> bounds_;  // by transaction
  std::optional<Holder> stalled_by_;
};

}  // namespace baton::eventlog
