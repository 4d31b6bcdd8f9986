#pragma once

// A session of one processor with the database of its log: where it stands, how far it may read,
// and what it writes about itself.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/processors.h"
#include "eventlog/frontier.h"
#include "sql/connection.h"
#include "sql/transaction.h"

namespace baton::eventlog {

// The row of a processor in event_processor.
struct ProcessorRow {
  Position position = 0;
  bool running = false;
  int attempts = 0;
  std::string rebuild_status;
  Position rebuild_position = 0;
};

struct Registration {
  std::string name;
  std::string kind;
  std::vector<std::string> tables;
  std::string owner;
  Token token = 0;
  std::vector<FenceToken> fence;
};

class BATON_EXPORT LogSession {
 public:
  // Shows the token to the fence and reads the progress, in one transaction: from then on a former
  // owner writes nothing.
  [[nodiscard]] static Result<std::unique_ptr<LogSession>> open(const std::string& url,
                                                                const Registration& registration,
                                                                Millis handler_timeout);

  // The row, and the frontier as of now. Outside of any transaction.
  Result<ProcessorRow> look();
  [[nodiscard]] Position frontier() const { return frontier_.position(); }
  // The transaction that stalls the frontier, in words, with pid and age; empty if none does.
  Result<std::string> stalled_by();

  // Of a batch: fenced, with the row locked.
  Result<sql::Transaction> begin();
  Result<ProcessorRow> lock_row(sql::Transaction& transaction);
  Result<std::vector<LoggedEvent>> read(sql::Transaction& transaction, Position after,
                                        Position up_to, std::size_t limit);
  Result<void> save(sql::Transaction& transaction, Position position);
  Result<void> save_rebuild(sql::Transaction& transaction, Position position);

  // In transactions of their own.
  Result<void> save_failure(Position position, int attempts, bool pause, const std::string& error);
  Result<void> fail_rebuild(const std::string& error);
  Result<void> heartbeat(const std::string& stalled_by, Millis stalled_for);

  [[nodiscard]] sql::Connection& connection() { return *connection_; }
  [[nodiscard]] const Registration& registration() const { return registration_; }
  [[nodiscard]] bool is_postgres() const;

 private:
  LogSession(std::unique_ptr<sql::Connection> connection, Registration registration)
      : connection_(std::move(connection)), registration_(registration) {}
  [[nodiscard]] static Error set_back(Position drawn, Position handled);
  Result<void> check_log();
  Result<void> take_over();
  Result<void> fenced(const std::string& sql, const sql::Values& values);

  std::unique_ptr<sql::Connection> connection_;
  const Registration registration_;
  std::string look_sql_;
  Frontier frontier_{0};
  std::int64_t backend_ = 0;  // pid of the server's process, to see a pooler change it
};

// Now, in milliseconds since 1970, as an expression of SQL.
[[nodiscard]] std::string_view now_ms(sql::Kind kind);

}  // namespace baton::eventlog
