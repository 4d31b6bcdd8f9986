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
// A session is made once and never mended: after an error that leaves its state unknown it is
// unusable, and whoever owns it opens another.
class Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const Settings& settings, Deadline deadline);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Result<Rows> run(const Statement& statement, const Params& params, Deadline deadline);

  // Ahead of its first use, where that must be quick. Does nothing if it is prepared.
  Result<void> prepare(const Statement& statement, Deadline deadline);

  // SQL without parameters; several statements are one transaction. Gives the last one's rows, as
  // text.
  Result<Rows> script(const std::string& sql, Deadline deadline);

  // One unnamed statement with text parameters and text rows.
  Result<Rows> once(const std::string& sql, const std::vector<std::string>& params,
                    Deadline deadline);

  // The same in two steps, for whoever uses many connections at once: what was sent is answered by
  // collect_now(), which does not wait, or collect(), which does.
  Result<void> send(const Statement& statement, const Params& params, Deadline deadline);
  Result<void> send_script(const std::string& sql);
  std::optional<Result<Rows>> collect_now();
  Result<Rows> collect(Deadline deadline);

  // The SQLSTATE of the last error; empty if it was the connection that failed.
  [[nodiscard]] const std::string& state() const { return state_; }

  [[nodiscard]] bool usable() const { return usable_; }

  // Not to be used any more, whatever the server thinks of it.
  void give_up() { usable_ = false; }

  // Looks whether the server has hung up while nobody used the connection.
  bool still_there();

  // Whether statements of two such sessions can end up in one backend.
  Result<bool> behind_transaction_pool(Deadline deadline);

  // How this session goes to the server, whoever said so: the URL, the environment or a file.
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
  // Reads what has arrived; false if the connection has gone.
  bool receive(std::vector<Notification>& notifications);

  // Asks the server to stop what it is doing for this session. Blocks while it connects, at most
  // for the connection's TCP timeout: not for a thread in a hurry.
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
  Rows polled_;  // by collect_now(), of a reply that is not complete yet
  std::optional<Error> polled_problem_;
};

}  // namespace baton::store::postgres
