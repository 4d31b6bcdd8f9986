#include "baton/fence.h"

#include <charconv>
#include <string>

#include <libpq-fe.h>

#include "core/fence.h"
#include "store/postgres/fence.sql.h"
#include "store/postgres/sql_error.h"
#include "store/postgres/wire.h"

namespace baton {
namespace {

namespace postgres = store::postgres;

// Installing is DDL, so a lock lets only one session do it at a time. Notices that something is
// there already are suppressed, and no name is looked up in a schema of another role. Both settings
// are put back afterwards, because the caller may have begun a transaction.
constexpr const char* kBeginInstall =
    "SELECT pg_catalog.set_config('baton.search_path',"
    "         pg_catalog.current_setting('search_path'), true),"
    "       pg_catalog.set_config('baton.client_min_messages',"
    "         pg_catalog.current_setting('client_min_messages'), true),"
    "       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),"
    "       pg_catalog.set_config('client_min_messages', 'warning', true),"
    "       pg_catalog.pg_advisory_xact_lock(4702111234474983747);";
constexpr const char* kEndInstall =
    "SELECT set_config('client_min_messages', current_setting('baton.client_min_messages'), true),"
    "       set_config('search_path', current_setting('baton.search_path'), true);";

Error error_of(PGconn* connection, const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string text =
      postgres::readable(message != nullptr ? message : PQerrorMessage(connection));
  const std::string_view code = state == nullptr ? "" : state;
  if (code == "BT001") return Error{.code = Code::fenced, .message = text};
  if (code.starts_with("22")) return Error{.code = Code::bad_request, .message = text};
  if (code == "42501") return Error{.code = Code::unauthorized, .message = text};
  if (postgres::is_conflict(code)) {
    return Error{.code = Code::unavailable,
                 .message = text + "; roll back and repeat the whole transaction",
                 .retryable = true};
  }
  if (code == "42883" || code == "42P01" || code == "3F000") {
    return Error{.code = Code::bad_store,
                 .message = text + "; install the fence first: baton fence install"};
  }
  if (code.empty() || code.starts_with("5")) {
    return Error{.code = Code::unavailable, .message = text, .retryable = true};
  }
  return Error{.code = Code::bad_store, .message = text};
}

// The rights that the role lacks to install the fence; empty inside the caller's transaction, which
// has failed by then and answers no more.
std::string grants_to_install(PGconn* connection) {
  if (PQtransactionStatus(connection) != PQTRANS_IDLE) return {};
  PGresult* result =
      PQexec(connection,
             "SELECT pg_catalog.concat_ws(' ',"
             " CASE WHEN pg_catalog.to_regnamespace('baton_fence') IS NULL AND"
             "   NOT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')"
             " THEN pg_catalog.format('GRANT CREATE ON DATABASE %I TO %I;', "
             "pg_catalog.current_database(), current_user) END,"
             " CASE WHEN NOT pg_catalog.has_schema_privilege('public', 'CREATE')"
             " THEN pg_catalog.format('GRANT CREATE ON SCHEMA public TO %I;', current_user) END)");
  const postgres::Rows rows(result);
  return PQresultStatus(result) == PGRES_TUPLES_OK ? std::string(rows.text(0, 0)) : std::string();
}

// For a role that may not call it.
std::string grants_to_fence(PGconn* connection) {
  const char* const user = PQuser(connection);
  if (user == nullptr) return {};
  char* const role = PQescapeIdentifier(connection, user, std::char_traits<char>::length(user));
  if (role == nullptr) return {};
  const std::string grant =
      "GRANT EXECUTE ON FUNCTION public.baton_fence(text), public.baton_fence(text, text, bigint) "
      "TO " +
      std::string(role) + ";";
  PQfreemem(role);
  return grant;
}

bool worked(const PGresult* result) {
  const auto status = PQresultStatus(result);
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

}  // namespace

Result<void> install_fence(PGconn* connection) {
  const std::string script =
      kBeginInstall + std::string(embedded::store_postgres::fence_sql) + kEndInstall;
  PGresult* result = PQexec(connection, script.c_str());
  const postgres::Rows rows(result);
  if (worked(result)) return {};
  Error error = error_of(connection, result);
  if (error.code != Code::unauthorized) return error;
  const std::string grants = grants_to_install(connection);
  if (!grants.empty()) {
    error.message += "; the owner of the database, or a superuser, can run: " + grants;
  }
  return error;
}

Result<void> fence(PGconn* connection, std::span<const FenceToken> tokens) {
  const auto ordered = core::in_fence_order(tokens);
  if (!ordered) return ordered.error();
  if (PQtransactionStatus(connection) == PQTRANS_IDLE) {
    return Error{.code = Code::bad_request,
                 .message = "a fence belongs into the transaction that writes: BEGIN first"};
  }
  const std::string lease = print_fence_tokens(*ordered);
  const char* const values[] = {lease.c_str()};
  PGresult* result = PQexecParams(connection, "SELECT public.baton_fence($1::pg_catalog.text)", 1,
                                  nullptr, values, nullptr, nullptr, 0);
  const postgres::Rows rows(result);
  if (worked(result)) return {};
  Error error = error_of(connection, result);
  if (error.code != Code::unauthorized) return error;
  const std::string grant = grants_to_fence(connection);
  if (!grant.empty()) error.message += "; the role that installed the fence can run: " + grant;
  return error;
}

// At READ COMMITTED, whatever the default is: there is nothing here that a snapshot could be wrong
// about.
Result<void> fence_alone(PGconn* connection, std::span<const FenceToken> tokens) {
  const auto execute = [&](const char* sql) -> Result<void> {
    PGresult* result = PQexec(connection, sql);
    const postgres::Rows rows(result);
    if (!worked(result)) return error_of(connection, result);
    return {};
  };
  if (PQtransactionStatus(connection) == PQTRANS_INTRANS ||
      PQtransactionStatus(connection) == PQTRANS_INERROR) {
    return Error{.code = Code::bad_request,
                 .message = "this connection is in a transaction already: call fence"};
  }
  if (auto begun = execute("BEGIN ISOLATION LEVEL READ COMMITTED"); !begun) return begun;
  auto passed = fence(connection, tokens);
  if (passed) passed = execute("COMMIT");
  if (!passed) (void)execute("ROLLBACK");
  return passed;
}

Result<Token> highest_fenced(PGconn* connection) {
  PGresult* result =
      // Qualified: a function unnest(bigint[]) of another role would fit better than the server's.
      PQexec(connection,
             "SELECT coalesce(pg_catalog.max(t), 0)"
             " FROM baton_fence.seen s, pg_catalog.unnest(s.tokens) t");
  const postgres::Rows rows(result);
  if (!worked(result)) return error_of(connection, result);
  const std::string_view text = rows.text(0, 0);
  Token highest = 0;
  std::from_chars(text.data(), text.data() + text.size(), highest);
  return highest;
}

}  // namespace baton
