#include "baton/postgres_store.h"
#include "store/common/token_floor.h"
#include "store/postgres/examine.h"
#include "store/postgres/schema.h"

namespace baton {
namespace {

namespace postgres = store::postgres;

class PostgresAdmin final : public StoreAdmin {
 public:
  explicit PostgresAdmin(postgres::Settings settings) : settings_(std::move(settings)) {}

  Result<StoreStatus> status(Deadline deadline) override {
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    StoreStatus status{.kind = "postgres",
                       .location = settings_.location,
                       .schema_expected = postgres::kSchemaVersion};
    const auto version = postgres::schema_version(**connection, settings_, deadline);
    if (!version) return version.error();
    status.schema_version = *version;
    auto server = (*connection)->script("SELECT current_setting('server_version')", deadline);
    if (!server) return server.error();
    status.details.emplace_back("server", "PostgreSQL " + std::string(server->text(0, 0)));
    if (*version == 0) return status;
    auto counts = (*connection)
                      ->script(
                          "SELECT (SELECT count(*) FROM baton.lock),"
                          " (SELECT count(*) FROM baton.holding WHERE expires >"
                          "   date_part('epoch', clock_timestamp()) * 1000000),"
                          " (SELECT count(*) FROM baton.waiter WHERE stale >"
                          "   date_part('epoch', clock_timestamp()) * 1000000),"
                          " coalesce(pg_sequence_last_value('baton.counter'), 0)",
                          deadline);
    if (!counts) return counts.error();
    const char* const labels[] = {"names", "holders", "waiters", "last token"};
    for (int i = 0; i < 4; ++i) {
      status.details.emplace_back(labels[i], std::string(counts->text(0, i)));
    }
    return status;
  }

  Result<std::pair<int, int>> migrate(Deadline deadline) override {
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    return postgres::migrate(**connection, settings_, deadline);
  }

  Result<MigrationPlan> plan_migration(Deadline deadline) override {
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    return postgres::plan_migration(**connection, settings_, deadline);
  }

  Result<void> raise_tokens(Token floor, Deadline deadline) override {
    if (auto ok = store::check_token_floor(floor); !ok) return ok;
    auto connection = postgres::Connection::open(settings_, deadline);
    if (!connection) return connection.error();
    auto raised =
        (*connection)
            ->once("SELECT baton.raise_tokens($1::bigint)", {std::to_string(floor)}, deadline);
    if (!raised) return raised.error();
    return {};
  }

  Result<std::vector<Finding>> examine(Millis ttl, Deadline deadline) override {
    return postgres::examine(settings_, {.ttl = ttl}, deadline);
  }

 private:
  const postgres::Settings settings_;
};

}  // namespace

Result<std::unique_ptr<StoreAdmin>> open_postgres_admin(std::string_view url,
                                                        Deadline /*deadline*/) {
  auto settings = postgres::parse_settings(url);
  if (!settings) return settings.error();
  return std::unique_ptr<StoreAdmin>(std::make_unique<PostgresAdmin>(std::move(*settings)));
}

}  // namespace baton
