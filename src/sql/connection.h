#pragma once

// One session with a database: a PostgreSQL server or an SQLite file. Everything of the project
// that runs SQL of its own goes through here; the lock stores have tuned sessions of their own.
//
// SQL is written with $1, $2, … for the values. On PostgreSQL a value stands for a quoted literal:
// the server takes its type from the place where it stands, and where nothing says it, SQL does:
// $1::bigint[].
//
// Deadlines. Every call returns by its deadline; one without a deadline has the statement timeout
// of the options and a little more, so that the server's refusal comes first.
//
// Errors say what can have happened. `in_doubt`: a change may have been committed, because the
// answer was lost. A statement inside a transaction is never in doubt, only its COMMIT is.
// `retryable`: the same may succeed later; after a serialization failure or a deadlock (40001,
// 40P01) or SQLITE_BUSY, roll back and repeat the whole transaction. `fenced` (SQLSTATE BT001): a
// newer holder has written. No message contains a password.
//
// A session is never reopened behind the caller's back: once usable() is false, throw it away. That
// of an SQLite file ends when the file is found deleted or replaced, which each transaction asks
// before BEGIN and before COMMIT, and each statement outside of one.
// Not thread-safe.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "baton/clock.h"
#include "baton/fence_token.h"
#include "baton/result.h"
#include "sql/value.h"

struct pg_conn;  // PGconn of libpq
struct sqlite3;

namespace baton::sql {

class Transaction;

enum class Kind : std::uint8_t { sqlite, postgres };

struct Options {
  std::string name;  // what messages call the database; empty: its URL without the password
  std::string application = "baton";  // application_name, unless the URL has one
  bool read_only = false;             // and as if `create` were false
  bool create = true;                 // SQLite: make a missing file, and use a write-ahead log

  // For sessions that are lent to users' code: a transaction of this class is known to have ended
  // also if that code has begun another one behind it. On PostgreSQL (14 and newer) it costs a SET
  // with every BEGIN.
  bool lent = false;

  Millis statement_timeout{10'000};  // PostgreSQL: also enforced by the server

  // PostgreSQL ends the session of a client that stands still for longer, so that a stopped process
  // does not keep its locks; 0: never. The first counts inside transactions (for a handler: its
  // timeout and 5 s more), the second outside: for sessions that hold locks or LISTEN.
  Millis idle_in_transaction_timeout{0};
  Millis idle_session_timeout{0};
};

// A statement that is prepared once a session, when it is first used there, and kept until the
// session ends: make one for each SQL text, not for each call. Not for sessions behind a
// transaction pooler.
class BATON_EXPORT Statement {
 public:
  explicit Statement(std::string sql);
  [[nodiscard]] const std::string& sql() const { return sql_; }
  [[nodiscard]] std::uint64_t id() const { return id_; }

 private:
  std::string sql_;
  std::uint64_t id_;  // copies share it
};

struct Notification {
  std::string channel;
  std::string payload;
};

class BATON_EXPORT Connection {
 public:
  using By = std::optional<Deadline>;

  // sqlite:PATH or postgres://…. SQLite: refuses network filesystems; a new file has mode 0600;
  // every commit is flushed to the disk.
  [[nodiscard]] static Result<std::unique_ptr<Connection>> open(const std::string& url,
                                                                const Options& options = {},
                                                                By by = {});
  virtual ~Connection() = default;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Rows> query(const std::string& sql, const Values& values = {}, By by = {});
  Result<Rows> query(const Statement& statement, const Values& values = {}, By by = {});

  // Several statements without values; outside of a transaction PostgreSQL makes them one.
  Result<void> script(const std::string& sql, By by = {});

  // Runs `body` in a transaction, and commits unless it gives an error. `by` is for BEGIN and
  // COMMIT; the statements of the body have their own.
  Result<void> transaction(const std::function<Result<void>(Transaction&)>& body, By by = {});

  // PostgreSQL: subscribes to a channel.
  Result<void> listen(const std::string& channel, By by = {});

  // The notifications since the last call. Waits until there is one or `until` has come; meanwhile
  // it speaks to the server often enough for idle_session_timeout.
  Result<std::vector<Notification>> wait_for_notifications(Deadline until);

  // False after an error that leaves the state of the session unknown.
  [[nodiscard]] bool usable() const { return usable_; }
  // Looks whether the server has hung up meanwhile, or the file was replaced. Does not wait.
  [[nodiscard]] virtual bool still_there() = 0;
  // Usable, and outside of any transaction.
  [[nodiscard]] virtual bool idle() const = 0;
  // In the transaction that was begun last by this class. False once a statement has ended it,
  // whatever that has begun instead: see Options::lent.
  [[nodiscard]] virtual bool in_own_transaction() const = 0;

  // The SQLSTATE of the last error of PostgreSQL; empty if the connection failed.
  [[nodiscard]] const std::string& sqlstate() const { return sqlstate_; }

  [[nodiscard]] virtual Kind kind() const = 0;
  // The session itself, for baton::fence and for users' own code; null for the other kind.
  [[nodiscard]] virtual pg_conn* postgres() const { return nullptr; }
  [[nodiscard]] virtual sqlite3* sqlite() const { return nullptr; }

 protected:
  explicit Connection(Options options) : options_(std::move(options)) {}

  virtual Result<Rows> run(const std::string& sql, const Values& values, Deadline by) = 0;
  virtual Result<Rows> run(const Statement& statement, const Values& values, Deadline by) = 0;
  virtual Result<void> run_script(const std::string& sql, Deadline by) = 0;
  virtual Result<void> begin(Deadline by) = 0;
  virtual Result<void> commit(Deadline by) = 0;
  virtual Result<void> rollback(Deadline by) = 0;
  virtual Result<void> fence(std::span<const FenceToken> tokens, Deadline by) = 0;
  virtual Result<void> subscribe(const std::string& channel, Deadline by);
  virtual Result<std::vector<Notification>> receive(Deadline until);

  [[nodiscard]] Deadline limit(By by) const;
  // An error if the session has been lost.
  [[nodiscard]] Result<void> check_usable() const;
  // An error if the transaction has been ended by a statement inside it.
  [[nodiscard]] Result<void> check_open() const;
  // "name: what went wrong".
  [[nodiscard]] std::string about(std::string_view problem) const;

  Options options_;
  bool usable_ = true;
  std::string sqlstate_;

 private:
  friend class Transaction;
  template <typename T>
  Result<T> noted(Result<T> result);
  template <typename Sql>
  Result<Rows> checked(const Sql& sql, const Values& values, By by);

  bool in_transaction_ = false;
  std::optional<Error> failure_;  // the first one in this transaction
};

}  // namespace baton::sql
