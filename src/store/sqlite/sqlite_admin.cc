#include <sys/stat.h>

#include <cstdint>

#include "core/apply.h"
#include "core/document.h"
#include "store/common/findings.h"
#include "store/common/token_floor.h"
#include "store/sqlite/examine.h"
#include "store/sqlite/location.h"
#include "store/sqlite/lock_file.h"
#include "store/sqlite/sqlite_store.h"

namespace baton::store {
namespace {

using namespace sqlite;

std::int64_t size_of(const std::string& path) {
  struct stat file {};
  return ::stat(path.c_str(), &file) == 0 ? static_cast<std::int64_t>(file.st_size) : -1;
}

// Opens the file for each call: an admin is short-lived, and must look at a file that has no schema
// or a newer one.
class SqliteAdmin final : public StoreAdmin {
 public:
  SqliteAdmin(std::string path, Machine machine)
      : path_(std::move(path)), machine_(std::move(machine)) {}

  Result<StoreStatus> status(Deadline deadline) override;
  Result<std::pair<int, int>> migrate(Deadline deadline) override;
  Result<void> raise_tokens(Token floor, Deadline deadline) override;
  Result<void> forget_damaged(const std::string& key, Deadline deadline) override;
  Result<std::vector<Finding>> examine(Millis ttl, Deadline deadline) override {
    if (auto there = check_directory(path_); !there) return there.error();
    return sqlite::examine(path_, {.ttl = ttl}, deadline);
  }

 private:
  [[nodiscard]] Result<void> count(StoreStatus& status, Deadline deadline) const;

  const std::string path_;
  const Machine machine_;
};

Result<StoreStatus> SqliteAdmin::status(Deadline deadline) {
  StoreStatus status;
  status.kind = "sqlite";
  status.location = "sqlite:" + path_;
  status.schema_expected = kSchemaVersion;
  if (auto there = check_directory(path_); !there) return there.error();
  const std::int64_t size = size_of(path_);
  if (size < 0) {
    status.details.emplace_back("file", "not there yet");
    return status;
  }
  status.details.emplace_back("size", std::to_string(size) + " bytes");
  status.details.emplace_back(
      "log", std::to_string(std::max<std::int64_t>(0, size_of(path_ + "-wal"))) + " bytes");
  auto database = Database::open(path_, deadline);
  if (!database) return database.error();
  auto version = schema_version(**database);
  if (!version) return version.error();
  status.schema_version = *version;
  for (const auto& [name, sql] :
       {std::pair{"journal mode", "PRAGMA journal_mode"}, {"SQLite", "SELECT sqlite_version()"}}) {
    auto answer = (*database)->ask(sql);
    if (!answer) return answer.error();
    status.details.emplace_back(name, std::move(*answer));
  }
  if (*version != kSchemaVersion) return status;
  for (const auto& [name, sql] : {std::pair{"boot id", "SELECT boot_id FROM baton_meta"},
                                  {"time namespace", "SELECT time_namespace FROM baton_meta"},
                                  {"last token", "SELECT counter FROM baton_meta"}}) {
    auto answer = (*database)->ask(sql);
    if (!answer) return answer.error();
    status.details.emplace_back(name, std::move(*answer));
  }
  if (auto counted = count(status, deadline); !counted) return counted.error();
  return status;
}

Result<void> SqliteAdmin::count(StoreStatus& status, Deadline deadline) const {
  auto file = LockFile::open(path_, machine_, deadline);
  if (!file) return file.error();
  std::size_t names = 0;
  std::size_t held = 0;
  std::size_t waiting = 0;
  std::size_t damaged = 0;
  bool complete = true;
  const core::StoreTime now = machine_.now();
  auto visited = (*file)->visit({}, [&](std::string_view key, std::string_view document) {
    ++names;
    if (const auto state = core::from_document(document)) {
      const LockInfo info = core::describe(std::string(key), *state, now, 0);
      held += info.holders.empty() ? 0 : 1;
      waiting += info.waiting;
    } else {
      ++damaged;
    }
    return complete = BootClock::now() < deadline;
  });
  if (!visited) return visited;
  const std::string note = complete ? "" : " (and more)";
  status.details.emplace_back("names", std::to_string(names) + note);
  status.details.emplace_back("held", std::to_string(held) + note);
  status.details.emplace_back("waiters", std::to_string(waiting) + note);
  if (damaged > 0) status.details.emplace_back("damaged", std::to_string(damaged) + note);
  return {};
}

Result<std::pair<int, int>> SqliteAdmin::migrate(Deadline deadline) {
  if (auto prepared = prepare_file(path_); !prepared) return prepared.error();
  auto database = Database::open(path_, deadline);
  if (!database) return database.error();
  if (auto wal = (*database)->use_wal(); !wal) return wal.error();
  auto found = sqlite::migrate(**database);
  if (!found) return found.error();
  return std::pair{*found, kSchemaVersion};
}

Result<void> SqliteAdmin::raise_tokens(Token floor, Deadline deadline) {
  if (auto ok = check_token_floor(floor); !ok) return ok;
  if (auto prepared = prepare_file(path_); !prepared) return prepared;
  auto file = LockFile::open(path_, machine_, deadline);
  if (!file) return file.error();
  auto transaction = Transaction::begin((*file)->database(), Transaction::Kind::write);
  if (!transaction) return transaction.error();
  auto state = (*file)->enter();
  if (!state) return state.error();
  if (state->counter < floor) {
    if (auto raised = (*file)->set_counter(floor); !raised) return raised;
  }
  if (auto committed = transaction->commit(); !committed) return committed;
  return (*file)->database().sync();
}

Result<void> SqliteAdmin::forget_damaged(const std::string& key, Deadline deadline) {
  if (size_of(path_) <= 0) return nothing_stored(key);
  auto file = LockFile::open(path_, machine_, deadline);
  if (!file) return file.error();
  auto transaction = Transaction::begin((*file)->database(), Transaction::Kind::write);
  if (!transaction) return transaction.error();
  if (auto state = (*file)->enter(); !state) return state.error();
  const auto document = (*file)->document(key);
  if (!document) return document.error();
  if (!*document) return nothing_stored(key);
  if (core::from_document(**document)) return not_damaged(key);
  if (auto erased = (*file)->erase(key); !erased) return erased;
  if (auto committed = transaction->commit(); !committed) return committed;
  return (*file)->database().sync();
}

}  // namespace
}  // namespace baton::store

namespace baton {

Result<std::unique_ptr<StoreAdmin>> open_sqlite_admin(std::string_view url, Deadline /*deadline*/) {
  auto path = store::sqlite::path_of(url);
  if (!path) return path.error();
  auto machine = store::sqlite::this_machine();
  if (!machine) return machine.error();
  return std::unique_ptr<StoreAdmin>(
      std::make_unique<store::SqliteAdmin>(std::move(*path), std::move(*machine)));
}

}  // namespace baton
