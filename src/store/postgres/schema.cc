#include "store/postgres/schema.h"

#include <array>
#include <charconv>

#include "store/postgres/apply.sql.h"
#include "store/postgres/migrate_1.sql.h"
#include "store/postgres/quick.sql.h"
#include "store/postgres/settle.sql.h"
#include "store/postgres/upkeep.sql.h"
#include "store/postgres/verbs.sql.h"
#include "store/postgres/verbs_more.sql.h"

namespace baton::store::postgres {
namespace {

namespace sql = embedded::store_postgres;

// migrations[n] leads from version n to n + 1. The functions are the newest ones, whatever it was.
constexpr std::array<std::string_view, kSchemaVersion> kMigrations = {sql::migrate_1_sql};
constexpr std::array<std::string_view, 6> kFunctions = {sql::settle_sql,     sql::verbs_sql,
                                                        sql::verbs_more_sql, sql::apply_sql,
                                                        sql::quick_sql,      sql::upkeep_sql};

constexpr const char* kMissingRights =
    "SELECT string_agg(need, ', ' ORDER BY need) FROM ("
    "  SELECT 'USAGE on schema baton' AS need FROM pg_namespace n"
    "  WHERE n.nspname = 'baton' AND NOT has_schema_privilege(n.oid, 'USAGE')"
    "  UNION ALL SELECT p || ' on baton.' || c.relname"
    "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,"
    "       unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p"
    "  WHERE n.nspname = 'baton' AND c.relname IN ('lock', 'holder', 'waiter', 'holding', 'meta')"
    "    AND (p = 'SELECT' OR c.relname IN ('lock', 'holder', 'waiter'))"
    "    AND NOT has_table_privilege(c.oid, p)"
    "  UNION ALL SELECT 'USAGE on sequence baton.' || c.relname"
    "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    "  WHERE n.nspname = 'baton' AND c.relname IN ('counter', 'schema_version')"
    "    AND NOT has_sequence_privilege(c.oid, 'USAGE')"
    "  UNION ALL SELECT 'EXECUTE on all functions in schema baton'"
    "  FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace"
    "  WHERE n.nspname = 'baton' AND NOT has_function_privilege(f.oid, 'EXECUTE')"
    "  GROUP BY 1) missing";

int to_int(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Error newer(int version) {
  return Error{.code = Code::bad_store,
               .message = "the store's schema has version " + std::to_string(version) +
                          ", this binary knows " + std::to_string(kSchemaVersion) +
                          ": use a newer Baton"};
}

Result<void> check_rights(Connection& connection, Deadline deadline) {
  auto rows = connection.script(kMissingRights, deadline);
  if (!rows) return rows.error();
  if (rows->null(0, 0)) return {};
  return Error{.code = Code::unauthorized,
               .message = "the role lacks " + std::string(rows->text(0, 0))};
}

std::string migration_from(int version) {
  std::string script;
  for (auto step = static_cast<std::size_t>(version); step < kMigrations.size(); ++step) {
    script += kMigrations[step];
  }
  for (const auto functions : kFunctions) script += functions;
  return script + "UPDATE baton.meta SET version = " + std::to_string(kSchemaVersion) +
         ", changed = clock_timestamp();";
}

}  // namespace

Result<int> schema_version(Connection& connection, const Settings& settings, Deadline deadline) {
  auto there = connection.script("SELECT to_regnamespace('baton') IS NOT NULL", deadline);
  if (!there) return there.error();
  if (there->text(0, 0) != "t") return 0;
  auto rows = connection.script("SELECT version FROM baton.meta", deadline);
  if (!rows) {
    if (connection.state() != "42P01") return rows.error();
    return Error{.code = Code::bad_store,
                 .message = "the schema baton in " + settings.location + " is not Baton's"};
  }
  return rows->size() == 1 ? to_int(rows->text(0, 0)) : 0;
}

Result<void> check_schema(Connection& connection, const Settings& settings, Deadline deadline) {
  if (auto allowed = check_rights(connection, deadline); !allowed) return allowed;
  const auto version = schema_version(connection, settings, deadline);
  if (!version) return version.error();
  if (*version > kSchemaVersion) return newer(*version);
  if (*version == kSchemaVersion) return {};
  const std::string what = *version == 0 ? "has no lock tables" : "has an old schema";
  return Error{.code = Code::bad_store,
               .message = settings.location + " " + what + "; run: baton store migrate --store " +
                          settings.location};
}

Result<std::pair<int, int>> migrate(Connection& connection, const Settings& settings,
                                    Deadline deadline) {
  const auto left = std::chrono::ceil<Millis>(deadline - BootClock::now());
  const std::string patience = std::to_string(std::max<std::int64_t>(left.count(), 1));
  // Version and tables are read only when nobody else is at it any more.
  auto begun = connection.script("BEGIN; SET LOCAL statement_timeout = " + patience +
                                     "; SET LOCAL lock_timeout = " + patience +
                                     "; SELECT pg_advisory_xact_lock(4702111234474983745)",
                                 deadline);
  if (!begun) return begun.error();
  const auto found = schema_version(connection, settings, deadline);
  if (!found || *found >= kSchemaVersion) {
    if (connection.usable()) (void)connection.script("ROLLBACK", deadline);
    if (!found) return found.error();
    if (*found > kSchemaVersion) return newer(*found);
    return std::pair(*found, *found);
  }
  auto done = connection.script(migration_from(*found), deadline);
  if (done) done = connection.script("COMMIT", deadline);
  if (!done) {
    const Error error = done.error();
    const bool no_rights = connection.state() == "42501";
    if (connection.usable()) (void)connection.script("ROLLBACK", deadline);
    if (no_rights) {
      return Error{.code = Code::unauthorized,
                   .message =
                       "migrating takes CREATE on the database, or the owner of the schema "
                       "baton if it is there"};
    }
    return error;
  }
  return std::pair(*found, kSchemaVersion);
}

}  // namespace baton::store::postgres
