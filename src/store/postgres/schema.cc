#include "store/postgres/schema.h"

#include <array>
#include <charconv>
#include <initializer_list>

#include "store/postgres/functions/acquire.sql.h"
#include "store/postgres/functions/apply.sql.h"
#include "store/postgres/functions/break.sql.h"
#include "store/postgres/functions/cancel.sql.h"
#include "store/postgres/functions/claim.sql.h"
#include "store/postgres/functions/convert.sql.h"
#include "store/postgres/functions/look.sql.h"
#include "store/postgres/functions/note.sql.h"
#include "store/postgres/functions/release.sql.h"
#include "store/postgres/functions/renew.sql.h"
#include "store/postgres/functions/reply.sql.h"
#include "store/postgres/functions/settle.sql.h"
#include "store/postgres/functions/upkeep.sql.h"
#include "store/postgres/migrate_1.sql.h"

namespace baton::store::postgres {
namespace {

namespace sql = embedded::store_postgres;
namespace function_files = embedded::store_postgres_functions;

// migrations[n] leads from version n to n + 1. Every migration ends with the newest functions.
constexpr std::array<std::string_view, kSchemaVersion> kMigrations = {sql::migrate_1_sql};
constexpr std::array kFunctions = {
    function_files::settle_sql,  function_files::reply_sql,   function_files::note_sql,
    function_files::acquire_sql, function_files::claim_sql,   function_files::renew_sql,
    function_files::convert_sql, function_files::release_sql, function_files::cancel_sql,
    function_files::break_sql,   function_files::look_sql,    function_files::apply_sql,
    function_files::upkeep_sql};

// $schema, $tables and $looks are the plan's.
constexpr std::string_view kMissingRights =
    "SELECT string_agg(need, ', ' ORDER BY need) FROM ("
    "  SELECT 'USAGE on schema $schema' AS need FROM pg_namespace n"
    "  WHERE n.nspname = '$schema' AND NOT has_schema_privilege(n.oid, 'USAGE')"
    "  UNION ALL SELECT p || ' on $schema.' || c.relname"
    "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace,"
    "       unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) p"
    "  WHERE n.nspname = '$schema' AND c.relname IN ($tables, $looks)"
    "    AND (p = 'SELECT' OR c.relname IN ($tables))"
    "    AND NOT has_table_privilege(c.oid, p)"
    "  UNION ALL SELECT 'USAGE on sequence $schema.' || c.relname"
    "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    "  WHERE n.nspname = '$schema' AND c.relname <> 'schema_version'"
    "    AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'USAGE') END"
    "  UNION ALL SELECT 'SELECT on sequence $schema.' || c.relname"
    "  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    "  WHERE n.nspname = '$schema' AND c.relname = 'schema_version'"
    "    AND CASE c.relkind WHEN 'S' THEN NOT has_sequence_privilege(c.oid, 'SELECT, USAGE') END"
    "  UNION ALL SELECT 'EXECUTE on all functions in schema $schema'"
    "  FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace"
    "  WHERE n.nspname = '$schema' AND NOT has_function_privilege(f.oid, 'EXECUTE')"
    "  GROUP BY 1) missing";

// The GRANT statements for all that kMissingRights looks for.
constexpr std::string_view kGrants =
    "SELECT concat_ws('; ',"
    "  format('GRANT USAGE ON SCHEMA $schema TO %1$I;"
    " GRANT SELECT ON ALL TABLES IN SCHEMA $schema TO %1$I', current_user),"
    "  format('GRANT INSERT, UPDATE, DELETE ON %s TO %I',"
    "    (SELECT string_agg('$schema.' || t, ', ') FROM unnest(ARRAY[$tables]) t), current_user),"
    "  (SELECT string_agg(format('GRANT %s ON SEQUENCE $schema.%I TO %I',"
    "            CASE c.relname WHEN 'schema_version' THEN 'SELECT' ELSE 'USAGE' END,"
    "            c.relname, current_user), '; ' ORDER BY c.relname)"
    "   FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    "   WHERE n.nspname = '$schema' AND c.relkind = 'S'),"
    "  (SELECT format('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA $schema TO %I', current_user)"
    "   WHERE EXISTS (SELECT FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace"
    "     WHERE n.nspname = '$schema' AND NOT has_function_privilege(f.oid, 'EXECUTE')))) || ';'";

// $trusted is a condition on the owner o of an object, on the owner s of the schema, and on this
// role, me.
constexpr std::string_view kForeignObjects =
    "SELECT string_agg(f.what || ' (of ' || f.owner || ')', ', ' ORDER BY f.what) FROM ("
    "  SELECT x.what, coalesce(o.rolname, x.owner::text) AS owner FROM ("
    "    SELECT 'schema $schema' AS what, n.nspowner AS owner, n.nspowner AS schema_owner"
    "    FROM pg_namespace n WHERE n.nspname = '$schema'"
    "    UNION ALL SELECT CASE c.relkind WHEN 'S' THEN 'sequence' WHEN 'v' THEN 'view'"
    "                       WHEN 'c' THEN 'type' ELSE 'table' END || ' $schema.' || c.relname,"
    "                     c.relowner, n.nspowner"
    "    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
    "    WHERE n.nspname = '$schema' AND c.relkind NOT IN ('i', 'I', 't')"
    "    UNION ALL SELECT 'function $schema.' || p.proname, p.proowner, n.nspowner"
    "    FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
    "    WHERE n.nspname = '$schema') x"
    "  JOIN pg_roles me ON me.rolname = current_user"
    "  LEFT JOIN pg_roles o ON o.oid = x.owner"
    "  WHERE NOT coalesce(o.rolsuper, false) AND NOT ($trusted)"
    "  ORDER BY x.what DESC LIMIT 5) f";

std::string with_parts(std::string_view text,
                       std::initializer_list<std::pair<std::string_view, std::string_view>> parts) {
  std::string sql(text);
  for (const auto& [name, value] : parts) {
    for (auto at = sql.find(name); at != std::string::npos; at = sql.find(name, at)) {
      sql.replace(at, name.size(), value);
      at += value.size();
    }
  }
  return sql;
}

Error foreign(const std::string& objects, const Settings& settings) {
  return Error{.code = Code::bad_store,
               .message = "in " + settings.location + " another role owns " + objects +
                          " and could change it at any time: migrate as that role, or let it "
                          "ALTER … OWNER TO the role that migrates; drop it only if it is not "
                          "Baton's, for with it go the locks and notes that it holds"};
}

int to_int(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Error newer(int version, const SchemaPlan& plan) {
  return Error{.code = Code::bad_store,
               .message = "the store's schema has version " + std::to_string(version) +
                          ", this binary knows " + std::to_string(plan.version()) +
                          ": use a newer Baton"};
}

constexpr std::string_view kFunctionsMark = "functions ";

// Identifies the functions by edition and checksum; kept as the comment of the table `meta`.
std::string mark_of(const SchemaPlan& plan) {
  std::uint64_t sum = 0xcbf29ce484222325ULL;
  for (const auto functions : plan.functions) {
    for (const char c : functions) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return std::string(kFunctionsMark) + std::to_string(plan.edition) + " " + std::to_string(sum);
}

Result<std::string> mark_there(Connection& connection, const Settings& settings,
                               Deadline deadline) {
  auto rows = connection.script(
      "SELECT obj_description('" + settings.schema + ".meta'::regclass, 'pg_class')", deadline);
  if (!rows) return rows.error();
  return std::string(rows->text(0, 0));
}

// 0 if the mark has none.
int edition_in(std::string_view mark) {
  if (!mark.starts_with(kFunctionsMark)) return 0;
  mark.remove_prefix(kFunctionsMark.size());
  const auto end = mark.find(' ');
  return end == std::string_view::npos ? 0 : to_int(mark.substr(0, end));
}

// Whether the functions of this binary are to replace those in the database.
Result<bool> is_to_replace_functions(Connection& connection, const Settings& settings,
                                     const SchemaPlan& plan, Deadline deadline) {
  const auto mark = mark_there(connection, settings, deadline);
  if (!mark) return mark.error();
  return *mark != mark_of(plan) && edition_in(*mark) <= plan.edition;
}

// Held by every migration, so that they run one after the other.
constexpr std::string_view kMigrationLock = "SELECT pg_advisory_xact_lock(4702111234474983745)";

std::string migration_from(int version, const Settings& settings, const SchemaPlan& plan) {
  std::string script;
  for (const auto step : plan.migrations.subspan(static_cast<std::size_t>(version))) script += step;
  for (const auto functions : plan.functions) script += functions;
  return script + "COMMENT ON TABLE " + settings.schema + ".meta IS '" + mark_of(plan) +
         "'; UPDATE " + settings.schema + ".meta SET version = " + std::to_string(plan.version()) +
         ", changed = clock_timestamp();";
}

// For psql, where no search_path is set as a connection of Baton sets it.
std::string script_from(int version, const Settings& settings, const SchemaPlan& plan) {
  const std::string meta = settings.schema + ".meta";
  std::string script = "BEGIN;\nSET LOCAL search_path = pg_catalog, pg_temp;\n" +
                       std::string(kMigrationLock) + ";\n";
  // Without a schema, CREATE SCHEMA does as much.
  if (version > 0) {
    script +=
        "DO $$ BEGIN IF (SELECT version FROM " + meta + ") <> " + std::to_string(version) +
        " THEN RAISE 'the schema is no longer as it was when this script was printed'; END IF;"
        " END $$;\n";
  }
  return script + migration_from(version, settings, plan) + "\nCOMMIT;\n";
}

}  // namespace

const SchemaPlan kPlan{.migrations = kMigrations,
                       .functions = kFunctions,
                       .edition = 2,
                       .tables = "'lock', 'holder', 'waiter'",
                       .looks = "'holding', 'meta'"};

Result<std::string> missing_rights(Connection& connection, const Settings& settings,
                                   Deadline deadline, const SchemaPlan& plan) {
  auto rows = connection.script(
      with_parts(kMissingRights,
                 {{"$schema", settings.schema}, {"$tables", plan.tables}, {"$looks", plan.looks}}),
      deadline);
  if (!rows) return rows.error();
  return std::string(rows->text(0, 0));
}

Result<std::string> grants_for_role(Connection& connection, const Settings& settings,
                                    Deadline deadline, const SchemaPlan& plan) {
  auto rows = connection.script(
      with_parts(kGrants, {{"$schema", settings.schema}, {"$tables", plan.tables}}), deadline);
  if (!rows) return rows.error();
  return std::string(rows->text(0, 0));
}

Result<std::string> foreign_objects(Connection& connection, const Settings& settings,
                                    Trusted trusted, Deadline deadline) {
  // A superuser has the rights of every role, so these rights do not show which roles it trusts.
  const std::string_view condition =
      trusted == Trusted::schema_owner
          ? "x.owner = x.schema_owner"
          : "x.owner = me.oid OR (NOT me.rolsuper AND pg_has_role(me.oid, x.owner, 'USAGE'))";
  auto rows = connection.script(
      with_parts(kForeignObjects, {{"$schema", settings.schema}, {"$trusted", condition}}),
      deadline);
  if (!rows) return rows.error();
  return std::string(rows->text(0, 0));
}

Result<int> schema_version(Connection& connection, const Settings& settings, Deadline deadline) {
  auto there =
      connection.script("SELECT to_regnamespace('" + settings.schema + "') IS NOT NULL", deadline);
  if (!there) return there.error();
  if (there->text(0, 0) != "t") return 0;
  auto rows = connection.script("SELECT version FROM " + settings.schema + ".meta", deadline);
  if (!rows) {
    if (connection.state() != "42P01") return rows.error();
    return Error{.code = Code::bad_store,
                 .message = "the schema " + settings.schema + " in " + settings.location +
                            " is not Baton's"};
  }
  return rows->size() == 1 ? to_int(rows->text(0, 0)) : 0;
}

Result<bool> has_older_functions(Connection& connection, const Settings& settings,
                                 Deadline deadline, const SchemaPlan& plan) {
  const auto mark = mark_there(connection, settings, deadline);
  if (!mark) return mark.error();
  return edition_in(*mark) < plan.edition;
}

Result<void> check_schema(Connection& connection, const Settings& settings, Deadline deadline,
                          const SchemaPlan& plan) {
  const auto missing = missing_rights(connection, settings, deadline, plan);
  if (!missing) return missing.error();
  if (!missing->empty()) {
    const auto grants = grants_for_role(connection, settings, deadline, plan);
    if (!grants) return grants.error();
    return Error{.code = Code::unauthorized,
                 .message = "the role of " + settings.location + " lacks " + *missing +
                            "; the owner of the schema can run: " + *grants};
  }
  const auto version = schema_version(connection, settings, deadline);
  if (!version) return version.error();
  if (*version > plan.version()) return newer(*version, plan);
  std::string what = *version == 0 ? "has no lock tables" : "has an old schema";
  if (*version == plan.version()) {
    const auto older = has_older_functions(connection, settings, deadline, plan);
    if (!older) return older.error();
    if (!*older) return {};
    what = "has old functions";
  }
  return Error{.code = Code::bad_store,
               .message = settings.location + " " + what + "; run: " + migrate_command(settings)};
}

Result<std::pair<int, int>> migrate(Connection& connection, const Settings& settings,
                                    Deadline deadline, const SchemaPlan& plan) {
  const auto left = std::chrono::ceil<Millis>(deadline - BootClock::now());
  const std::string patience = std::to_string(std::max<std::int64_t>(left.count(), 1));
  // Version and tables are read under the lock, when no other migration runs.
  auto begun = connection.script("BEGIN; SET LOCAL statement_timeout = " + patience +
                                     "; SET LOCAL lock_timeout = " + patience + "; " +
                                     std::string(kMigrationLock),
                                 deadline);
  if (!begun) return begun.error();
  const auto foreign_ones = foreign_objects(connection, settings, Trusted::this_role, deadline);
  if (!foreign_ones || !foreign_ones->empty()) {
    if (connection.usable()) (void)connection.script("ROLLBACK", deadline);
    if (!foreign_ones) return foreign_ones.error();
    return foreign(*foreign_ones, settings);
  }
  const auto found = schema_version(connection, settings, deadline);
  Result<bool> work = found && *found < plan.version();
  if (found && *found == plan.version()) {
    work = is_to_replace_functions(connection, settings, plan, deadline);
  }
  if (!work || !*work) {
    if (connection.usable()) (void)connection.script("ROLLBACK", deadline);
    if (!found) return found.error();
    if (!work) return work.error();
    if (*found > plan.version()) return newer(*found, plan);
    return std::pair(*found, *found);
  }
  auto done = connection.script(migration_from(*found, settings, plan), deadline);
  if (done) done = connection.script("COMMIT", deadline);
  if (!done) {
    const Error error = done.error();
    const bool no_rights = connection.state() == "42501";
    if (connection.usable()) (void)connection.script("ROLLBACK", deadline);
    if (no_rights) {
      const auto grant = connection.script(
          "SELECT format('GRANT CREATE ON DATABASE %I TO %I;', current_database(), current_user)",
          deadline);
      return Error{
          .code = Code::unauthorized,
          .message = "migrating takes CREATE on the database, or the owner of the schema " +
                     settings.schema + " if it is there" +
                     (grant ? "; run: " + std::string(grant->text(0, 0)) : "")};
    }
    return error;
  }
  return std::pair(*found, plan.version());
}

Result<MigrationPlan> plan_migration(Connection& connection, const Settings& settings,
                                     Deadline deadline, const SchemaPlan& plan) {
  const auto foreign_ones = foreign_objects(connection, settings, Trusted::this_role, deadline);
  if (!foreign_ones) return foreign_ones.error();
  if (!foreign_ones->empty()) return foreign(*foreign_ones, settings);
  const auto found = schema_version(connection, settings, deadline);
  if (!found) return found.error();
  if (*found > plan.version()) return newer(*found, plan);
  MigrationPlan planned{.from = *found, .to = plan.version()};
  if (*found == plan.version()) {
    const auto functions = is_to_replace_functions(connection, settings, plan, deadline);
    if (!functions) return functions.error();
    planned.functions = *functions;
  }
  if (!planned.empty()) planned.sql = script_from(*found, settings, plan);
  return planned;
}

}  // namespace baton::store::postgres
