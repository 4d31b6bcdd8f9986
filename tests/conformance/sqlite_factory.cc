#include <filesystem>
#include <stdexcept>

#include <sqlite3.h>

#include "harness.h"
#include "store/sqlite/sqlite_store.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

class SqliteFactory final : public StoreFactory {
 public:
  std::unique_ptr<LockStore> fresh(std::shared_ptr<ManualTime> time) override {
    const auto directory = directory_ / std::to_string(++stores_);
    std::filesystem::create_directory(directory);
    std::filesystem::remove_all(directory_ / std::to_string(stores_ - 1));
    std::filesystem::create_directories(directory);
    return store::open_sqlite_store_with(
               {.path = directory / "locks.db", .now = [time] { return time->now(); }}, soon())
        .value();
  }
  bool damage(const std::string& key, const std::string& text) override {
    sqlite3* database = nullptr;
    sqlite3_stmt* update = nullptr;
    const std::string path = directory_ / std::to_string(stores_) / "locks.db";
    const bool done = sqlite3_open(path.c_str(), &database) == SQLITE_OK &&
                      sqlite3_prepare_v2(database, "UPDATE baton_lock SET doc = ?2 WHERE key = ?1",
                                         -1, &update, nullptr) == SQLITE_OK &&
                      sqlite3_bind_text64(update, 1, key.data(), key.size(), SQLITE_STATIC,
                                          SQLITE_UTF8) == SQLITE_OK &&
                      sqlite3_bind_text64(update, 2, text.data(), text.size(), SQLITE_STATIC,
                                          SQLITE_UTF8) == SQLITE_OK &&
                      sqlite3_step(update) == SQLITE_DONE && sqlite3_changes(database) == 1;
    sqlite3_finalize(update);
    sqlite3_close(database);
    if (!done) throw std::runtime_error("cannot change " + path);
    return true;
  }
  std::unique_ptr<StoreAdmin> admin() override {
    const std::string path = directory_ / std::to_string(stores_) / "locks.db";
    return open_sqlite_admin("sqlite:" + path, soon()).value();
  }
  [[nodiscard]] int model_sequences() const override { return 2'000; }

 private:
  TempDir directory_{"baton-sqlite"};
  int stores_ = 0;
};

}  // namespace

std::unique_ptr<StoreFactory> make_factory() { return std::make_unique<SqliteFactory>(); }

}  // namespace baton::test
