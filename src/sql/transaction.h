#pragma once

#include <span>
#include <string>
#include <utility>

#include "sql/connection.h"

namespace baton::sql {

// A transaction on a connection, rolled back at the end of the scope unless it was committed. On
// SQLite it takes the write lock when it begins (BEGIN IMMEDIATE).
//
// Statements may go through it or through its connection. Once one has failed, the transaction
// cannot be committed any more, on SQLite as on PostgreSQL.
class BATON_EXPORT Transaction {
 public:
  using By = Connection::By;

  [[nodiscard]] static Result<Transaction> begin(Connection& connection, By by = {});
  Transaction(Transaction&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();  // takes a second at most; a session that does not answer becomes unusable

  // First in the transaction: refuses (`fenced`) a lease that has been overtaken. See
  // baton/fence.h.
  Result<void> fence(std::span<const FenceToken> tokens, By by = {});
  template <typename Held>
  requires requires(const Held& held) { held.tokens(); }
  Result<void> fence(const Held& held, By by = {}) {
    const auto tokens = held.tokens();
    return fence(std::span<const FenceToken>(tokens), by);
  }

  template <typename Sql>
  Result<Rows> query(const Sql& sql, const Values& values = {}, By by = {}) {
    return connection_->query(sql, values, by);
  }
  Result<void> script(const std::string& sql, By by = {}) { return connection_->script(sql, by); }

  // Success means that the database has answered COMMIT. Without `in_doubt` an error means that
  // nothing was written: COMMIT of a failed transaction is answered with ROLLBACK.
  [[nodiscard]] Result<void> commit(By by = {});
  Result<void> rollback(By by = {});

  [[nodiscard]] Connection& connection() const { return *connection_; }

 private:
  explicit Transaction(Connection& connection) : connection_(&connection) {}
  void end();

  Connection* connection_;  // null once it has ended
};

}  // namespace baton::sql
