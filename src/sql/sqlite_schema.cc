#include <sqlite3.h>

#include "core/bad_request.h"
#include "sql/schema.h"
#include "store/sqlite/database.h"

namespace baton::sql {
namespace {

// The number in the first column of the first row; 0 without one.
Result<std::int64_t> number(sqlite3* database, std::string_view sql) {
  auto statement = store::sqlite::Statement::prepare(database, sql);
  if (!statement) return statement.error();
  const store::sqlite::Rewind rewind(*statement);
  auto row = statement->step();
  if (!row) return row.error();
  return *row ? statement->integer(0) : 0;
}

}  // namespace

Result<void> all_or_nothing(sqlite3* database, const char* begin,
                            const std::function<Result<void>()>& body) {
  const auto execute = [&](const char* sql) -> Result<void> {
    const int code = sqlite3_exec(database, sql, nullptr, nullptr, nullptr);
    if (code != SQLITE_OK) return store::sqlite::explain(database, code);
    return {};
  };
  const bool own = sqlite3_get_autocommit(database) != 0;
  if (auto begun = execute(own ? begin : "SAVEPOINT baton"); !begun) return begun;
  Result<void> done = body();
  if (done) done = execute(own ? "COMMIT" : "RELEASE baton");
  // Some errors have rolled back everything by themselves.
  if (!done && sqlite3_get_autocommit(database) == 0) {
    (void)execute(own ? "ROLLBACK" : "ROLLBACK TO baton");
    if (!own) (void)execute("RELEASE baton");
  }
  return done;
}

Result<std::int64_t> installed_version(sqlite3* database, const Schema& schema) {
  const std::string table = schema.version_table();
  auto tables =
      number(database, "SELECT count(*) FROM main.sqlite_schema WHERE type = 'table' AND name = '" +
                           table + "'");
  if (!tables || *tables == 0) return tables;
  return number(database, "SELECT max(version) FROM main." + table);
}

Result<void> install(sqlite3* database, const Schema& schema) {
  if (database == nullptr) return bad_request("no database was given");
  return all_or_nothing(database, "BEGIN IMMEDIATE", [&]() -> Result<void> {
    const auto version = installed_version(database, schema);
    if (!version) return version.error();
    if (*version > schema.version) return made_by_newer(schema, *version);
    if (*version == schema.version) return {};
    for (const auto script : schema.scripts) {
      const int code =
          sqlite3_exec(database, std::string(script).c_str(), nullptr, nullptr, nullptr);
      if (code != SQLITE_OK) return store::sqlite::explain(database, code);
    }
    return {};
  });
}

}  // namespace baton::sql
