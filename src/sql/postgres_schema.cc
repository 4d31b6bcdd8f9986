#include <cstdlib>

#include "core/bad_request.h"
#include "sql/postgres_connection.h"
#include "sql/postgres_error.h"
#include "sql/schema.h"

namespace baton::sql {
namespace {

// Two that install at once would trip over each other's DDL. While it runs, no name is looked up in
// a schema of somebody else; the setting is put back, for the caller may have begun a transaction.
constexpr const char* kBeginInstall =
    "SELECT pg_catalog.set_config('baton.search_path',"
    "         pg_catalog.current_setting('search_path'), true),"
    "       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),"
    "       pg_catalog.pg_advisory_xact_lock(4702111234474983748)";
constexpr const char* kEndInstall =
    "SELECT set_config('search_path', current_setting('baton.search_path'), true)";

Result<PostgresResult> execute(PGconn* connection, const std::string& sql) {
  PostgresResult answer(PQexec(connection, sql.c_str()));
  const auto status = PQresultStatus(answer.get());
  if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) return answer;
  const char* state = PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE);
  const char* primary = PQresultErrorField(answer.get(), PG_DIAG_MESSAGE_PRIMARY);
  return postgres_error(state == nullptr ? "" : state,
                        readable(primary != nullptr ? primary : PQerrorMessage(connection)));
}

std::string in_schema(std::string_view script, const std::string& schema) {
  constexpr std::string_view kPlace = "$schema";
  std::string text(script);
  for (auto at = text.find(kPlace); at != text.npos; at = text.find(kPlace, at + schema.size())) {
    text.replace(at, kPlace.size(), schema);
  }
  return text;
}

// The first schema of the search path, as it is written in SQL.
Result<std::string> find_schema(PGconn* connection) {
  auto answer =
      execute(connection, "SELECT pg_catalog.quote_ident(pg_catalog.current_schema()::text)");
  if (!answer) return answer.error();
  if (PQgetisnull(answer->get(), 0, 0) != 0) {
    return bad_request("no schema of the search path exists; set search_path to one that does");
  }
  std::string schema = PQgetvalue(answer->get(), 0, 0);
  // It is put into texts of SQL and into bodies of functions.
  if (schema.find_first_of("'$\\") != schema.npos) {
    return bad_request("the name of the schema " + schema + " has a quote, $ or \\ in it");
  }
  return schema;
}

// 0: it is not there.
Result<int> version_in(PGconn* connection, const std::string& version_table) {
  auto there = execute(connection, "SELECT to_regclass('" + version_table + "')");
  if (!there) return there.error();
  if (PQgetisnull(there->get(), 0, 0) != 0) return 0;
  auto version = execute(connection, "SELECT max(version) FROM " + version_table);
  if (!version) return version.error();
  return std::atoi(PQgetvalue(version->get(), 0, 0));
}

// Texts from elsewhere must fit: a row that cannot be stored would stop its reader for good.
Result<void> check_encoding(PGconn* connection, const Schema& schema) {
  const char* encoding = PQparameterStatus(connection, "server_encoding");
  if (encoding != nullptr && std::string_view(encoding) == "UTF8") return {};
  return Error{.code = Code::bad_store,
               .message = "the encoding of this database is " +
                          std::string(encoding == nullptr ? "unknown" : encoding) + ", but the " +
                          std::string(schema.name) + " needs UTF8"};
}

Result<void> install_in(PGconn* connection, const Schema& schema, const std::string& place) {
  if (auto fits = check_encoding(connection, schema); !fits) return fits;
  if (auto begun = execute(connection, kBeginInstall); !begun) return begun.error();
  const auto version = version_in(connection, place + "." + schema.version_table());
  if (!version) return version.error();
  if (*version > schema.version) return made_by_newer(schema, *version);
  if (*version < schema.version) {
    for (const auto script : schema.scripts) {
      if (auto made = execute(connection, in_schema(script, place)); !made) return made.error();
    }
  }
  if (auto ended = execute(connection, kEndInstall); !ended) return ended.error();
  return {};
}

}  // namespace

Result<void> install(PGconn* connection, const Schema& schema) {
  if (connection == nullptr) return bad_request("no connection was given");
  const bool own = PQtransactionStatus(connection) == PQTRANS_IDLE;
  if (own) {
    if (auto begun = execute(connection, "BEGIN ISOLATION LEVEL READ COMMITTED"); !begun) {
      return begun.error();
    }
  }
  const auto place = find_schema(connection);
  auto done = place ? install_in(connection, schema, *place) : Result<void>(place.error());
  if (!own) return done;
  if (!done) {
    (void)execute(connection, "ROLLBACK");
    return done;
  }
  auto committed = execute(connection, "COMMIT");
  if (!committed) return committed.error();
  return {};
}

}  // namespace baton::sql
