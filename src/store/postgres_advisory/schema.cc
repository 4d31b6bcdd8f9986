#include "store/postgres_advisory/schema.h"

#include <array>

#include "store/postgres_advisory/holding.sql.h"
#include "store/postgres_advisory/looking.sql.h"
#include "store/postgres_advisory/migrate_1.sql.h"

namespace baton::store::postgres_advisory {
namespace {

namespace sql = embedded::store_postgres_advisory;

constexpr std::array<std::string_view, 1> kMigrations = {sql::migrate_1_sql};
constexpr std::array<std::string_view, 2> kFunctions = {sql::holding_sql, sql::looking_sql};

}  // namespace

const postgres::SchemaPlan kPlan{.migrations = kMigrations,
                                 .functions = kFunctions,
                                 .edition = 2,
                                 .tables = "'term', 'note', 'server', 'waiter'",
                                 .looks = "'session_lock', 'meta'"};

}  // namespace baton::store::postgres_advisory
