#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include <libpq-fe.h>

#include "sql/connection.h"
#include "sql/postgres_values.h"

namespace baton::sql {

// A session with a PostgreSQL server. libpq never blocks here: every wait is a poll(2) with the
// call's deadline. A call that leaves at its deadline makes the session unusable, since the answer
// may still come; the server notices within a second that the session was closed.
class PostgresConnection final : public Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const std::string& url, Options options,
                                                  Deadline by);
  ~PostgresConnection() override;

  [[nodiscard]] bool still_there() override;
  [[nodiscard]] bool idle() const override;
  [[nodiscard]] bool in_own_transaction() const override;
  [[nodiscard]] Kind kind() const override { return Kind::postgres; }
  [[nodiscard]] pg_conn* postgres() const override { return connection_; }

 protected:
  Result<Rows> run(const std::string& sql, const Values& values, Deadline by) override;
  Result<Rows> run(const Statement& statement, const Values& values, Deadline by) override;
  Result<void> run_script(const std::string& sql, Deadline by) override;
  Result<void> begin(Deadline by) override;
  Result<void> commit(Deadline by) override;
  Result<void> rollback(Deadline by) override;
  Result<void> fence(std::span<const FenceToken> tokens, Deadline by) override;
  Result<void> subscribe(const std::string& channel, Deadline by) override;
  Result<std::vector<Notification>> receive(Deadline until) override;

 private:
  // Whether a request may have taken effect if its answer is lost.
  enum class Lost : std::uint8_t { nothing_done, in_doubt };

  PostgresConnection(PGconn* connection, Options options, std::vector<std::string> secrets);
  Result<void> connect(Deadline by);
  Result<void> set_up_session(Deadline by);
  Result<void> ready(Deadline by);
  void beat();
  Result<void> prepare(const Statement& statement, int parameters, const Oid* types, Deadline by);
  Result<PostgresResult> command(const std::string& sql, Deadline by, Lost lost);
  Result<PostgresResult> collect(int sent, Deadline by, Lost lost);
  Result<void> wait_for_answer(Deadline by, Lost lost);
  [[nodiscard]] Lost outside_transaction() const;
  [[nodiscard]] bool has_mark() const;
  [[nodiscard]] std::string role() const;
  Error broken(Lost lost);
  Error late(Lost lost);
  Error refused(const PGresult* result, Lost lost);
  [[nodiscard]] std::string without_secrets(const char* message) const;

  PGconn* connection_;
  std::vector<std::string> secrets_;
  std::set<std::uint64_t> prepared_;  // ids of statements
  Instant last_spoke_;                // to the server
  bool marked_ = false;               // the transaction that was begun last
  bool beating_ = false;              // a heartbeat has not been answered yet
};

}  // namespace baton::sql
