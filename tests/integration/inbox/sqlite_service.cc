#include "consumer_fixture.h"

namespace baton::test {
namespace {

class SqliteService final : public ServiceDatabase {
 public:
  [[nodiscard]] std::string url() const override {
    return "sqlite:" + (dir_ / "service.db").string();
  }

 private:
  TempDir dir_ = TempDir::in_memory("service");
};

}  // namespace

std::unique_ptr<ServiceDatabase> make_service_database() {
  return std::make_unique<SqliteService>();
}

}  // namespace baton::test
