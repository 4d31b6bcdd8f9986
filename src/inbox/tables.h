#pragma once

// The SQL of the inbox: reads and writes what decision.h decides, inside transactions of the
// caller. Times are those of the database. Thread-safe; the connections are the caller's.

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "inbox/decision.h"
#include "inbox/kept_message.h"
#include "sql/transaction.h"

namespace baton::inbox {

// A row of inbox_events with its message.
struct Kept {
  std::string event_id;
  Trouble row;
  std::string last_error;
  Message message;
  Millis in_trouble_for{0};  // since its first failure
};

// What became of a transaction, as the server knows it.
enum class TransactionState : std::uint8_t { open, committed, rolled_back };

class Tables {
 public:
  struct Entered {
    std::vector<std::string> fresh;  // ids that were not there
    std::int64_t transaction = 0;    // PostgreSQL: its id, if there is any fresh one
  };

  Tables(sql::Kind kind, std::string consumer, std::string queue, bool ordered,
         std::function<Millis()> time_shift);

  // `bad_store`: no inbox, or one of a newer Baton.
  Result<void> check(sql::Connection& connection) const;

  // Puts ids into the ledger, in their order. Waits for transactions that put one of them there
  // too.
  Result<Entered> enter(sql::Transaction& transaction, const std::vector<std::string>& ids,
                        Outcome outcome) const;
  // PostgreSQL. What the server does not know (any more) was rolled back, or is long ago.
  static Result<TransactionState> look_up(sql::Connection& connection, std::int64_t transaction);
  Result<void> set_outcome(sql::Transaction& transaction, const std::string& id,
                           Outcome outcome) const;
  Result<void> leave(sql::Transaction& transaction, const std::string& id) const;

  // Which of these aggregates have a row that holds. None if the consumer is not ordered. Ask after
  // enter(): what others have decided about earlier events is visible then.
  Result<std::set<std::string>> in_trouble(sql::Transaction& transaction,
                                           const std::vector<std::string>& aggregates) const;

  // Rows of inbox_events, locked until the end of the transaction.
  Result<Row> lock(sql::Transaction& transaction, const std::string& id) const;
  // The retry that has been due for longest and that nobody else has locked. If the consumer is
  // ordered, only heads; with no such retry, a head that is HELD.
  Result<std::optional<Kept>> lock_due(sql::Transaction& transaction) const;

  // What a decision says about a message that has no row yet, and about one that has.
  Result<void> insert(sql::Transaction& transaction, const KeptMessage& message,
                      const Decision& decision, const std::string& error) const;
  Result<void> update(sql::Transaction& transaction, const std::string& id,
                      const Decision& decision, const std::string& error) const;

  // Forgets at most `most` ids that were settled for good longer ago than `window`, and their rows.
  Result<std::int64_t> forget_old(sql::Connection& connection, Millis window,
                                  std::int64_t most) const;

 private:
  struct Statements;
  [[nodiscard]] std::int64_t shift() const;
  Result<std::optional<Kept>> lock_first(sql::Transaction& transaction,
                                         const sql::Statement& statement, sql::Values values) const;

  const sql::Kind kind_;
  const std::string consumer_;
  const std::string queue_;
  const bool ordered_;
  const std::function<Millis()> time_shift_;
  const Statements& sql_;
};

}  // namespace baton::inbox
