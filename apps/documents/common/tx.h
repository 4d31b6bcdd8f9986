#pragma once

// SQL of a service, the same text for PostgreSQL and SQLite: values are $1, $2, …, times are bound
// as RFC 3339 text in UTC ("2026-11-18T20:14:03.271Z") and JSON as text.

#include <stdexcept>
#include <string>
#include <string_view>

#include "baton/consumer.h"
#include "baton/result.h"
#include "sql/connection.h"
#include "sql/transaction.h"

namespace baton::documents {

struct SqlError : std::runtime_error {
  explicit SqlError(Error why) : std::runtime_error(why.message), error(std::move(why)) {}
  Error error;
};

// A session inside somebody's transaction, or outside of any to read. Cheap to copy; what it is
// made from outlives it.
class Tx {
 public:
  explicit Tx(const Handling& handling)
      : postgres_(handling.postgres()), sqlite_(handling.sqlite()) {}
  explicit Tx(sql::Connection& connection) : connection_(&connection) {}
  explicit Tx(const sql::Transaction& transaction) : Tx(transaction.connection()) {}

  // Throws SqlError: a handler that throws has failed, and its transaction is rolled back.
  [[nodiscard]] sql::Rows query(const std::string& sql, const sql::Values& values = {}) const;
  // The same, prepared once a session: for what is done for every event or request.
  [[nodiscard]] sql::Rows query(const sql::Statement& sql, const sql::Values& values) const;
  // How many rows it wrote.
  template <typename Sql>
  std::int64_t write(const Sql& sql, const sql::Values& values = {}) const {
    return query(sql, values).affected();
  }

  [[nodiscard]] bool on_postgres() const;

  // A column of time as text of the form above: for SELECT.
  [[nodiscard]] std::string time(const std::string& column) const;

 private:
  sql::Connection* connection_ = nullptr;
  pg_conn* postgres_ = nullptr;
  sqlite3* sqlite_ = nullptr;
};

// The value of a result, or its error thrown.
template <typename T>
T need(Result<T> result) {
  if (!result) throw SqlError(std::move(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

[[nodiscard]] std::string now_text();
// Of a time of that form, by the clock of this machine; 0 if it is not one, or in the future.
[[nodiscard]] double age_in_seconds(const std::string& time);

}  // namespace baton::documents
