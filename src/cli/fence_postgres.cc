#include "cli/fence_database.h"
#include "sql/transaction.h"
#include "store/postgres/fence.sql.h"

namespace baton::cli {
namespace {

// One transaction, because several statements in one message are one. The lock is that of
// baton::install_fence: two installations at once would trip over each other.
constexpr const char* kBeginInstall =
    "SET search_path = pg_catalog, pg_temp;"
    "SELECT pg_advisory_xact_lock(4702111234474983747);";

// What the role lacks to install the fence.
constexpr const char* kGrantsToInstall =
    "SELECT pg_catalog.concat_ws(' ',"
    " (SELECT pg_catalog.format('GRANT %I TO %I;', o.rolname, current_user)"
    "  FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner"
    "  WHERE n.nspname = 'baton_fence' AND NOT pg_catalog.pg_has_role(n.nspowner, 'USAGE')),"
    " CASE WHEN pg_catalog.to_regnamespace('baton_fence') IS NULL"
    "  AND NOT pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')"
    " THEN pg_catalog.format('GRANT CREATE ON DATABASE %I TO %I;',"
    "  pg_catalog.current_database(), current_user) END,"
    " CASE WHEN NOT pg_catalog.has_schema_privilege('public', 'CREATE')"
    " THEN pg_catalog.format('GRANT CREATE ON SCHEMA public TO %I;', current_user) END)";

constexpr const char* kGrantsToLook =
    "SELECT pg_catalog.format('GRANT USAGE ON SCHEMA baton_fence TO %1$I;"
    " GRANT SELECT ON baton_fence.seen TO %1$I;', current_user)";

// Through baton::sql and not through baton::install_fence and its neighbours: those wait for an
// answer without a deadline.
class PostgresFence final : public FenceDatabase {
 public:
  PostgresFence(std::unique_ptr<sql::Connection> connection, std::string role)
      : connection_(std::move(connection)), role_(std::move(role)) {}

  Result<void> install() override {
    auto done =
        connection_->script(kBeginInstall + std::string(embedded::store_postgres::fence_sql));
    if (!done) return with_remedy(done.error(), kGrantsToInstall);
    return done;
  }

  Result<Token> highest() override {
    // Qualified: a function unnest(bigint[]) of another role would fit better than the server's.
    auto rows = connection_->query(
        "SELECT coalesce(pg_catalog.max(t), 0)"
        " FROM baton_fence.seen s, pg_catalog.unnest(s.tokens) t");
    if (rows) return static_cast<Token>(rows->front().integer(0));
    Error error = rows.error();
    if (connection_->sqlstate() == "42P01" || connection_->sqlstate() == "3F000") {
      error.message += "; install the fence first: baton fence install";
    }
    return with_remedy(std::move(error), kGrantsToLook);
  }

  Result<void> check(std::span<const FenceToken> tokens) override {
    auto transaction = sql::Transaction::begin(*connection_);
    if (!transaction) return transaction.error();
    auto passed = transaction->fence(tokens);
    if (!passed) return with_remedy(passed.error());
    return passed;
  }

 private:
  // `grants_query` asks for the GRANT statements that the role lacks.
  Error with_remedy(Error error, const char* grants_query = nullptr) {
    if (connection_->sqlstate() == "25006") {
      error.message +=
          "; connect to a primary, or, if only the role is read-only, an administrator can run: "
          "ALTER ROLE " +
          role_ + " SET default_transaction_read_only = off;";
    }
    if (grants_query == nullptr || error.code != Code::unauthorized || !connection_->idle())
      return error;
    const auto grants = connection_->query(grants_query);
    if (!grants || grants->empty() || grants->front().text(0).empty()) return error;
    error.message += "; an administrator can run: " + grants->front().text(0);
    return error;
  }

  std::unique_ptr<sql::Connection> connection_;
  const std::string role_;  // quoted for SQL
};

}  // namespace

Result<std::unique_ptr<FenceDatabase>> open_postgres_fence(const std::string& url) {
  auto connection = sql::Connection::open(url, {.application = "baton fence"});
  if (!connection) return connection.error();
  const auto role = (*connection)->query("SELECT pg_catalog.quote_ident(current_user)");
  if (!role) return role.error();
  return std::unique_ptr<FenceDatabase>(
      new PostgresFence(std::move(*connection), role->front().text(0)));
}

}  // namespace baton::cli
