#include "consumer_fixture.h"
#include "support/postgres_database.h"

namespace baton::test {
namespace {

class PostgresService final : public ServiceDatabase {
 public:
  [[nodiscard]] std::string url() const override { return database_.url(); }
  [[nodiscard]] bool can_go_away() const override { return true; }
  void take_away() override {
    admin_.sql("ALTER DATABASE " + database_.name() + " ALLOW_CONNECTIONS false");
    admin_.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '" +
               database_.name() + "'");
  }
  void bring_back() override {
    admin_.sql("ALTER DATABASE " + database_.name() + " ALLOW_CONNECTIONS true");
  }

 private:
  Database database_;
  Session admin_{shared_server()};
};

}  // namespace

std::unique_ptr<ServiceDatabase> make_service_database() {
  return std::make_unique<PostgresService>();
}

}  // namespace baton::test
