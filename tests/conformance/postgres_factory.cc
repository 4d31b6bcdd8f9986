#include <cstdlib>
#include <stdexcept>

#include <unistd.h>

#include <libpq-fe.h>

#include "harness.h"
#include "store/postgres/postgres_store.h"

namespace baton::test {
namespace {

void execute(const std::string& url, const std::string& sql) {
  PGconn* connection = PQconnectdb(url.c_str());
  PGresult* result = PQexec(connection, sql.c_str());
  const auto status = PQresultStatus(result);
  const std::string problem = PQerrorMessage(connection);
  PQclear(result);
  PQfinish(connection);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) throw std::runtime_error(problem);
}

// A database of its own on the shared server, emptied before each use.
class PostgresFactory final : public StoreFactory {
 public:
  PostgresFactory() {
    const char* server = std::getenv("BATON_TEST_POSTGRES");
    if (server == nullptr) throw std::runtime_error("BATON_TEST_POSTGRES names no server");
    server_ = server;
    database_ = "conformance_" + std::to_string(getpid());
    execute(server_, "CREATE DATABASE " + database_ + " TEMPLATE template0 ENCODING 'UTF8'");
    url_ = server_.substr(0, server_.rfind('/') + 1) + database_;
    open_postgres_admin(url_, soon()).value()->migrate(soon()).value();
  }
  ~PostgresFactory() override {
    try {
      execute(server_, "DROP DATABASE " + database_ + " WITH (FORCE)");
    } catch (const std::exception&) {
      // The server goes with the test run.
    }
  }
  PostgresFactory(const PostgresFactory&) = delete;
  PostgresFactory& operator=(const PostgresFactory&) = delete;

  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    execute(url_,
            "DELETE FROM baton.lock; DELETE FROM baton.holder; DELETE FROM baton.waiter;"
            "SELECT setval('baton.schema_version', 0)");
    return store::open_postgres_store({.url = url_, .now = [time] { return time->now(); }}, soon())
        .value();
  }
  [[nodiscard]] int model_sequences() const override { return 1'000; }

 private:
  std::string server_;
  std::string database_;
  std::string url_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<PostgresFactory>(); }

}  // namespace baton::test
