#pragma once

// Statements on a PGconn of the caller's, for the public functions that take one. They block as
// libpq does.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <libpq-fe.h>

#include "baton/export.h"
#include "baton/result.h"
#include "sql/connection.h"
#include "sql/postgres_values.h"
#include "sql/schema.h"
#include "sql/value.h"

namespace baton::sql {

class BATON_EXPORT PostgresCall {
 public:
  using Answer = PostgresResult;

  // Makes an error of an SQLSTATE and its message; by default postgres_error().
  using Explain = std::function<Error(std::string_view sqlstate, std::string message)>;

  explicit PostgresCall(PGconn* connection, Explain explain = {})
      : connection_(connection), explain_(std::move(explain)) {}

  Result<Answer> execute(const std::string& sql);
  Result<Answer> execute(const char* sql, const Values& values);
  // Prepared once a session, as Statement says: for sessions that belong to us, in the hands of a
  // handler.
  Result<Answer> execute(const Statement& statement, const Values& values);
  Result<Answer> execute(const Statement& statement, const Oid* types, const char* const* values,
                         int count);
  // Text values, bound where they are; those of null are NULL.
  Result<Answer> execute(const char* sql, const Oid* types, const char* const* values, int count);

  // An error unless the caller has begun a transaction in which statements in UTF-8 can run.
  Result<void> check_transaction() const;

 private:
  Result<Answer> answered(PGresult* raw);
  Result<std::string> prepare(const Statement& statement, int parameters, const Oid* types);

  PGconn* connection_;
  Explain explain_;
};

// postgres_error(), but for tables and functions that are not there: then how to install them.
[[nodiscard]] BATON_EXPORT Error postgres_error(std::string_view sqlstate, std::string message,
                                                const Schema& schema);

}  // namespace baton::sql
