#include <filesystem>

#include "harness.h"
#include "store/sqlite/sqlite_store.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

class SqliteFactory final : public StoreFactory {
 public:
  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    const auto directory = directory_ / std::to_string(++stores_);
    std::filesystem::remove_all(directory_ / std::to_string(stores_ - 1));
    return store::open_sqlite_store_with(
               {.path = directory / "locks.db", .now = [time] { return time->now(); }}, soon())
        .value();
  }
  [[nodiscard]] int model_sequences() const override { return 2'000; }

 private:
  TempDir directory_{"baton-sqlite"};
  int stores_ = 0;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<SqliteFactory>(); }

}  // namespace baton::test
