#include <cstdlib>
#include <stdexcept>

#include <unistd.h>

#include <libpq-fe.h>

#include "harness.h"
#include "store/postgres_advisory/advisory_store.h"

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
class PostgresAdvisoryFactory final : public StoreFactory {
 public:
  PostgresAdvisoryFactory() {
    const char* server = std::getenv("BATON_TEST_POSTGRES");
    if (server == nullptr) throw std::runtime_error("BATON_TEST_POSTGRES names no server");
    server_ = server;
    database_ = "conformance_advisory_" + std::to_string(getpid());
    execute(server_, "CREATE DATABASE " + database_ + " TEMPLATE template0 ENCODING 'UTF8'");
    url_ = server_.substr(0, server_.rfind('/') + 1) + database_;
    advisory_url_ = "postgres-advisory" + url_.substr(url_.find(':')) + "?baton_max_waiters=64";
    open_postgres_advisory_admin(advisory_url_, soon()).value()->migrate(soon()).value();
  }
  ~PostgresAdvisoryFactory() override {
    try {
      execute(server_, "DROP DATABASE " + database_ + " WITH (FORCE)");
    } catch (const std::exception&) {
      // The server goes with the test run.
    }
  }
  PostgresAdvisoryFactory(const PostgresAdvisoryFactory&) = delete;
  PostgresAdvisoryFactory& operator=(const PostgresAdvisoryFactory&) = delete;

  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    // The sessions of the store before are closed, but the server may not have noticed yet.
    execute(url_,
            "SET client_min_messages = error;"
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid();"
            "DELETE FROM baton_advisory.term; DELETE FROM baton_advisory.note;"
            "DELETE FROM baton_advisory.waiter");
    return store::open_postgres_advisory_store(
               {.url = advisory_url_, .now = [time] { return time->now(); }}, soon())
        .value();
  }
  [[nodiscard]] int model_sequences() const override { return 100; }

 private:
  std::string server_;
  std::string database_;
  std::string url_;
  std::string advisory_url_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<PostgresAdvisoryFactory>(); }

}  // namespace baton::test
