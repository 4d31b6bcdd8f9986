#include "harness.h"
#include "store/postgres/postgres_store.h"
#include "support/postgres_database.h"

namespace baton::test {
namespace {

// A database of its own on the shared server, emptied before each use.
class PostgresFactory final : public StoreFactory {
 public:
  PostgresFactory() { database_.migrate(); }

  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    return open(std::move(time), database_.url());
  }
  std::unique_ptr<LockStore> fresh_with_long_limits(std::shared_ptr<ManualTime> time) override {
    return open(std::move(time), database_.url() + "?baton_apply_timeout=30s");
  }
  [[nodiscard]] int model_sequences() const override { return 1'000; }

 private:
  std::unique_ptr<LockStore> open(std::shared_ptr<ManualTime> time, const std::string& url) {
    Session(database_.url())
        .sql(
            "DELETE FROM baton.lock; DELETE FROM baton.holder; DELETE FROM baton.waiter;"
            "SELECT setval('baton.schema_version', 0)");
    // Names are contended all the time here, and the fast paths are to be tested all the same.
    return store::open_postgres_store(
               {.url = url, .now = [time] { return time->now(); }, .contended_for = Millis{0}},
               soon())
        .value();
  }

  Database database_;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<PostgresFactory>(); }

}  // namespace baton::test
