#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "baton/store_admin.h"
#include "store/postgres/connection.h"

namespace baton::store::postgres {

// The version of the tables and functions that this binary knows.
inline constexpr int kSchemaVersion = 1;

// The tables and functions of a schema; Settings::schema is its name. A function that is no longer
// used is not dropped by a migration, because an older binary may still call it.
struct SchemaPlan {
  std::span<const std::string_view> migrations;  // [n] leads from version n to n + 1
  std::span<const std::string_view> functions;   // replaced by every migration
  int edition;              // of the functions: raised by every release that changes them
  std::string_view tables;  // as a list of quoted names: what a role that locks may write
  std::string_view looks;   // and what it may only read
  [[nodiscard]] int version() const { return static_cast<int>(migrations.size()); }
};
extern const SchemaPlan kPlan;  // of the postgres: store

// 0 if there is no schema.
Result<int> schema_version(Connection& connection, const Settings& settings, Deadline deadline);

// Fails, saying what to do, unless the schema is the one this binary knows and the role may use it.
Result<void> check_schema(Connection& connection, const Settings& settings, Deadline deadline,
                          const SchemaPlan& plan = kPlan);

// The GRANT statements that give the role all that it must be able to do, in one line.
Result<std::string> grants_for_role(Connection& connection, const Settings& settings,
                                    Deadline deadline, const SchemaPlan& plan = kPlan);

// The rights that the role needs and lacks, in words; empty if it has all.
Result<std::string> missing_rights(Connection& connection, const Settings& settings,
                                   Deadline deadline, const SchemaPlan& plan = kPlan);

// Whether the functions in the database are of an older edition than this binary's, which may call
// functions that are missing there.
Result<bool> has_older_functions(Connection& connection, const Settings& settings,
                                 Deadline deadline, const SchemaPlan& plan = kPlan);

// Objects in the schema, and the schema itself, that belong to a role that is not trusted, as
// "table baton.lock (of mallory)"; empty if there are none. Reads only the catalogs, so that no
// function of such a role is run.
enum class Trusted : std::uint8_t {
  this_role,     // and superusers, and roles whose rights this one has without being a superuser
  schema_owner,  // and superusers
};
Result<std::string> foreign_objects(Connection& connection, const Settings& settings,
                                    Trusted trusted, Deadline deadline);

// Returns the version found and the version left. Refuses a schema with foreign objects, since
// their owner could change them later. Concurrent migrations run one after the other. Also replaces
// the functions of the same version, unless those in the database are of a newer edition.
Result<std::pair<int, int>> migrate(Connection& connection, const Settings& settings,
                                    Deadline deadline, const SchemaPlan& plan = kPlan);

// The plan of `migrate`, with a script that does it in psql and fails if the schema has changed
// meanwhile. Changes nothing.
Result<MigrationPlan> plan_migration(Connection& connection, const Settings& settings,
                                     Deadline deadline, const SchemaPlan& plan = kPlan);

}  // namespace baton::store::postgres
