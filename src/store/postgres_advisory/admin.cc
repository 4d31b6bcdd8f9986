#include <optional>

#include "baton/postgres_advisory_store.h"
#include "store/common/findings.h"
#include "store/common/token_floor.h"
#include "store/postgres/examine.h"
#include "store/postgres_advisory/advisory_settings.h"
#include "store/postgres_advisory/schema.h"

namespace baton {
namespace {

namespace postgres = store::postgres;
namespace advisory = store::postgres_advisory;

class PostgresAdvisoryAdmin final : public StoreAdmin {
 public:
  explicit PostgresAdvisoryAdmin(advisory::AdvisorySettings settings)
      : settings_(std::move(settings.server)), max_waiters_(settings.max_waiters) {}

  Result<StoreStatus> status(Deadline deadline) override {
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    StoreStatus status{.kind = "postgres-advisory",
                       .location = settings_.location,
                       .schema_expected = advisory::kPlan.version()};
    const auto version = postgres::schema_version(**connection, settings_, deadline);
    if (!version) return version.error();
    status.schema_version = *version;
    auto server = (*connection)->script("SELECT current_setting('server_version')", deadline);
    if (!server) return server.error();
    status.details.emplace_back("server", "PostgreSQL " + std::string(server->text(0, 0)));
    if (*version == 0) return status;
    auto counts =
        (*connection)
            ->script(
                "SELECT count(*) FILTER (WHERE t.pid IS NOT NULL),"
                " (SELECT count(*) FROM baton_advisory.waiter w JOIN baton_advisory.session_lock s"
                "    ON s.pid = w.pid AND s.lock_key = w.lock_key AND NOT s.granted),"
                " coalesce(pg_sequence_last_value('baton_advisory.counter'), 0)"
                " FROM baton_advisory.session_lock l JOIN baton_advisory.term t"
                "    ON t.pid = l.pid AND t.lock_key = l.lock_key WHERE l.granted",
                deadline);
    if (!counts) return counts.error();
    const char* const labels[] = {"holders", "waiters", "last token"};
    for (int i = 0; i < 3; ++i) {
      status.details.emplace_back(labels[i], std::string(counts->text(0, i)));
    }
    return status;
  }

  Result<std::pair<int, int>> migrate(Deadline deadline) override {
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    return postgres::migrate(**connection, settings_, deadline, advisory::kPlan);
  }

  Result<MigrationPlan> plan_migration(Deadline deadline) override {
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    return postgres::plan_migration(**connection, settings_, deadline, advisory::kPlan);
  }

  Result<void> raise_tokens(Token floor, Deadline deadline) override {
    if (auto ok = store::check_token_floor(floor); !ok) return ok;
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    auto raised = (*connection)
                      ->once("SELECT baton_advisory.raise_tokens($1::bigint)",
                             {std::to_string(floor)}, deadline);
    if (!raised) return raised.error();
    return {};
  }

  // A session for each that waits, one for what is held, and the three that look around.
  Result<std::vector<Finding>> examine(Millis ttl, Deadline deadline) override {
    const int sessions = static_cast<int>(max_waiters_) + 4;
    auto findings = postgres::examine(
        settings_, {.ttl = ttl, .sessions = sessions, .plan = advisory::kPlan}, deadline);
    if (!findings) return findings;
    // The sessions that have locks set their own timers, so nobody else's end them.
    std::erase_if(*findings, [](const Finding& f) { return f.code == "idle-session-timeout"; });
    if (auto open = open_keys(deadline)) findings->push_back(std::move(*open));
    store::worst_first(*findings);
    return findings;
  }

 private:
  // An advisory lock has no owner: any role that can call the function can take its key.
  std::optional<Finding> open_keys(Deadline deadline) const {
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return std::nullopt;
    const auto anybody =
        (*connection)
            ->script(
                "SELECT current_database(), has_database_privilege('public', current_database(),"
                " 'CONNECT') AND (SELECT bool_or(has_function_privilege('public', oid, 'EXECUTE'))"
                " FROM pg_catalog.pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace"
                " AND proname ~ '^pg_(try_)?advisory_(xact_)?lock(_shared)?$')",
                deadline);
    if (!anybody || anybody->size() == 0 || anybody->text(0, 1) != "t") return std::nullopt;
    const std::string database(anybody->text(0, 0));
    return Finding{
        .code = "advisory-keys-open",
        .severity = Severity::advice,
        .what = "any role that can log in can connect to the database " + database +
                " and take advisory locks there",
        .consequence = "such a role can keep every lock of Baton busy, for as long as it likes",
        .remedy = "REVOKE CONNECT ON DATABASE " + database +
                  " FROM PUBLIC and GRANT it to the roles that use Baton, or give Baton a "
                  "database of its own"};
  }

  const postgres::Settings settings_;
  const std::size_t max_waiters_;
};

}  // namespace

Result<std::unique_ptr<StoreAdmin>> open_postgres_advisory_admin(std::string_view url,
                                                                 Deadline /*deadline*/) {
  auto settings = store::postgres_advisory::parse_advisory_url(url);
  if (!settings) return settings.error();
  return std::unique_ptr<StoreAdmin>(std::make_unique<PostgresAdvisoryAdmin>(std::move(*settings)));
}

}  // namespace baton
