#include "baton/fence.h"

#include <charconv>
#include <string>

#include <libpq-fe.h>

#include "store/postgres/fence.sql.h"
#include "store/postgres/sql_error.h"
#include "store/postgres/wire.h"

namespace baton {
namespace {

namespace postgres = store::postgres;

// Installing is DDL: two at once would trip over each other. That it is there already is no news.
constexpr const char* kInstallLock =
    "SELECT set_config('client_min_messages', 'warning', true),"
    " pg_advisory_xact_lock(4702111234474983747);";

Error error_of(PGconn* connection, const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  const std::string text =
      postgres::readable(message != nullptr ? message : PQerrorMessage(connection));
  const std::string_view code = state == nullptr ? "" : state;
  if (code == "BT001") return Error{.code = Code::fenced, .message = text};
  if (code == "22023") return Error{.code = Code::bad_request, .message = text};
  if (code == "42501") return Error{.code = Code::unauthorized, .message = text};
  if (code == "42883" || code == "42P01" || code == "3F000") {
    return Error{.code = Code::bad_store,
                 .message = text + "; install the fence first: baton fence install"};
  }
  if (code.empty() || postgres::is_conflict(code) || code.starts_with("5")) {
    return Error{.code = Code::unavailable, .message = text, .retryable = true};
  }
  return Error{.code = Code::bad_store, .message = text};
}

bool worked(const PGresult* result) {
  const auto status = PQresultStatus(result);
  return status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK;
}

}  // namespace

Result<void> install_fence(PGconn* connection) {
  const std::string script = kInstallLock + std::string(embedded::store_postgres::fence_sql);
  PGresult* result = PQexec(connection, script.c_str());
  const postgres::Rows rows(result);
  if (!worked(result)) return error_of(connection, result);
  return {};
}

Result<void> fence(PGconn* connection, std::string_view key, Mode mode, Token token) {
  if (PQtransactionStatus(connection) == PQTRANS_IDLE) {
    return Error{.code = Code::bad_request,
                 .message = "a fence belongs into the transaction that writes: BEGIN first"};
  }
  const std::string name(key);
  const std::string word(short_name(mode));
  const std::string number = std::to_string(token);
  const char* const values[] = {name.c_str(), word.c_str(), number.c_str()};
  PGresult* result = PQexecParams(connection, "SELECT public.baton_fence($1, $2, $3::bigint)", 3,
                                  nullptr, values, nullptr, nullptr, 0);
  const postgres::Rows rows(result);
  if (!worked(result)) return error_of(connection, result);
  return {};
}

Result<Token> highest_fenced(PGconn* connection) {
  PGresult* result =
      PQexec(connection, "SELECT coalesce(max(t), 0) FROM baton_fence.seen s, unnest(s.tokens) t");
  const postgres::Rows rows(result);
  if (!worked(result)) return error_of(connection, result);
  const std::string_view text = rows.text(0, 0);
  Token highest = 0;
  std::from_chars(text.data(), text.data() + text.size(), highest);
  return highest;
}

}  // namespace baton
