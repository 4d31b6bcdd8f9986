#include <cstdlib>
#include <string>

#include <libpq-fe.h>

#include "core/bad_request.h"
#include "sql/component.h"
#include "sql/postgres_call.h"

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

std::string in_schema(std::string_view script, const std::string& schema) {
  constexpr std::string_view kPlace = "$schema";
  std::string text(script);
  for (auto at = text.find(kPlace); at != text.npos; at = text.find(kPlace, at + schema.size())) {
    text.replace(at, kPlace.size(), schema);
  }
  return text;
}

// The first schema of the search path, as it is written in SQL.
Result<std::string> find_schema(PostgresCall& call) {
  auto answer = call.execute("SELECT pg_catalog.quote_ident(pg_catalog.current_schema()::text)");
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
Result<int> installed_version(PostgresCall& call, const std::string& schema,
                              const Component& component) {
  const std::string table = schema + "." + std::string(component.name) + "_version";
  auto there = call.execute("SELECT to_regclass('" + table + "')");
  if (!there) return there.error();
  if (PQgetisnull(there->get(), 0, 0) != 0) return 0;
  auto version = call.execute("SELECT max(version) FROM " + table);
  if (!version) return version.error();
  return std::atoi(PQgetvalue(version->get(), 0, 0));
}

Result<void> install_in(PostgresCall& call, const std::string& schema, const Component& component) {
  if (auto begun = call.execute(kBeginInstall); !begun) return begun.error();
  const auto version = installed_version(call, schema, component);
  if (!version) return version.error();
  if (*version > component.version) return made_by_newer(component, *version);
  if (*version < component.version) {
    for (const std::string_view script : component.postgres) {
      if (auto made = call.execute(in_schema(script, schema)); !made) return made.error();
    }
  }
  if (auto ended = call.execute(kEndInstall); !ended) return ended.error();
  return {};
}

}  // namespace

Result<void> install(PGconn* connection, const Component& component) {
  if (connection == nullptr) return bad_request("no connection was given");
  PostgresCall call(connection);
  const bool own = PQtransactionStatus(connection) == PQTRANS_IDLE;
  if (own) {
    if (auto begun = call.execute("BEGIN ISOLATION LEVEL READ COMMITTED"); !begun) {
      return begun.error();
    }
  }
  const auto schema = find_schema(call);
  auto done = schema ? install_in(call, *schema, component) : Result<void>(schema.error());
  if (!own) return done;
  if (!done) {
    (void)call.execute("ROLLBACK");
    return done;
  }
  auto committed = call.execute("COMMIT");
  if (!committed) return committed.error();
  return {};
}

}  // namespace baton::sql
