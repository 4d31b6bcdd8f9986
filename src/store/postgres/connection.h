#pragma once

#include <bitset>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/clock.h"
#include "baton/result.h"
#include "store/postgres/settings.h"
#include "store/postgres/wire.h"

namespace baton::store::postgres {

// A statement that is prepared once a connection, when it is first used.
struct Statement {
  std::size_t number;  // its own among all statements, below kMaxStatements
  const char* name;
  std::string_view sql;
  std::vector<Oid> types;
};
inline constexpr std::size_t kMaxStatements = 16;

// One session with the server. Every wait ends at its deadline. Not thread-safe.
//
// A session is never repaired: after an error that leaves its state unknown it is unusable, and its
// owner opens another one.
class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const Settings& settings, Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Rows> run(const Statement& statement, const Params& params, Deadline deadline);

  // Prepares a statement before its first use, where that use must be fast. Does nothing if it is
  // prepared already.
  Result<void> prepare(const Statement& statement, Deadline deadline);

  // SQL without parameters; several statements are one transaction. Returns the rows of the last
  // statement, as text.
  Result<Rows> script(const std::string& sql, Deadline deadline);

  // One unnamed statement with text parameters and text rows.
  Result<Rows> once(const std::string& sql, const std::vector<std::string>& params,
                    Deadline deadline);

  // The same in two steps, for a caller that uses many connections at once: collect_now() returns
  // the result of what was sent if it has arrived, collect() waits for it.
  Result<void> send(const Statement& statement, const Params& params, Deadline deadline);
  Result<void> send_script(const std::string& sql);
  std::optional<Result<Rows>> collect_now();
  Result<Rows> collect(Deadline deadline);

  // The SQLSTATE of the last error; empty if it was the connection that failed.
  [[nodiscard]] const std::string& state() const { return state_; }

  [[nodiscard]] bool usable() const { return usable_; }

  // Makes the session unusable although the server keeps it open.
  void give_up() { usable_ = false; }

  // Whether the server has kept the connection open while nobody used it.
  bool still_there();

  // Whether a proxy may run statements of two sessions in one backend.
  Result<bool> behind_transaction_pool(Deadline deadline);

  // How this session is connected, whether the URL, the environment or a file says so.
  struct Line {
    std::string host;  // or the path of a socket
    std::string sslmode;
    bool has_password = false;
  };
  [[nodiscard]] Line line() const;

  [[nodiscard]] int socket() const;
  struct Notification {
    std::string channel;
    std::string payload;
  };
  // Reads the notifications that have arrived; false if the connection is lost.
  bool receive(std::vector<Notification>& notifications);

  // Asks the server to cancel the running statement. Opens a connection for that, and blocks for up
  // to its TCP timeout.
  void cancel();

 private:
  Connection(PGconn* connection, const Settings& settings)
      : settings_(settings), connection_(connection) {}

  Result<void> connect(Deadline deadline);
  Result<void> begin_session(Deadline deadline);
  Result<Rows> finish(Deadline deadline);
  Result<void> await(Deadline deadline);
  Error broken();
  Error refused(const PGresult* result);
  [[nodiscard]] std::string last_words() const;

  const Settings& settings_;
  PGconn* connection_;
  std::bitset<kMaxStatements> prepared_;
  std::string state_;
  bool usable_ = true;
  Instant last_answer_;
  Rows polled_;  // what collect_now() has of a result that is not complete yet
  std::optional<Error> polled_problem_;
};

}  // namespace baton::store::postgres
