#include "store/sqlite/lock_file.h"

#include <utility>
#include <vector>

#include "core/document.h"
#include "store/sqlite/schema.sql.h"

namespace baton::store::sqlite {
namespace {

Error refuse(std::string message) {
  return {.code = Code::bad_store, .message = std::move(message)};
}

Error newer_schema(const std::string& path, std::int64_t version) {
  return refuse(path + " has schema version " + std::to_string(version) + ", this program knows " +
                std::to_string(kSchemaVersion) + ": use a newer program");
}

Result<void> create_schema(Database& database) {
  auto encoding = database.ask("PRAGMA encoding");
  if (!encoding) return encoding.error();
  // Keys are compared byte by byte here and in SQL alike.
  if (*encoding != "UTF-8") {
    return refuse(database.path() + " is a " + *encoding + " database: locks need UTF-8");
  }
  return database.execute(embedded::store_sqlite::schema_sql);
}

}  // namespace

Result<int> schema_version(Database& database) {
  auto table = database.ask("SELECT 1 FROM sqlite_schema WHERE name = 'baton_meta'");
  if (!table) return table.error();
  if (table->empty()) return 0;
  auto statement = database.prepare("SELECT schema_version FROM baton_meta");
  if (!statement) return statement.error();
  auto row = statement->step();
  if (!row) return row.error();
  if (!*row) return refuse(database.path() + " has lost its baton_meta row: restore a backup");
  return static_cast<int>(statement->integer(0));
}

Result<int> migrate(Database& database) {
  auto found = schema_version(database);
  if (!found || *found == kSchemaVersion) return found;
  if (*found > kSchemaVersion) return newer_schema(database.path(), *found);
  auto transaction = Transaction::begin(database, Transaction::Kind::write);
  if (!transaction) return transaction.error();
  // Another process may have been faster.
  auto version = schema_version(database);
  if (!version) return version;
  if (*version == 0) {
    if (auto created = create_schema(database); !created) return created.error();
  }
  if (auto committed = transaction->commit(); !committed) return committed.error();
  if (auto synced = database.sync(); !synced) return synced.error();
  return found;
}

Result<std::unique_ptr<LockFile>> LockFile::open(const std::string& path, const Machine& machine,
                                                 Deadline deadline) {
  auto database = Database::open(path, deadline);
  if (!database) return database.error();
  if (auto wal = (*database)->use_wal(); !wal) return wal.error();
  if (auto migrated = migrate(**database); !migrated) return migrated.error();
  std::unique_ptr<LockFile> file(new LockFile(std::move(*database), machine));
  if (auto prepared = file->prepare(); !prepared) return prepared.error();
  return file;
}

Result<void> LockFile::prepare() {
  for (auto [statement, sql] :
       {std::pair{&meta_,
                  "SELECT schema_version, counter, boot_id, time_namespace FROM baton_meta"},
        {&document_, "SELECT doc FROM baton_lock WHERE key = ?1"},
        {&save_,
         "INSERT INTO baton_lock (key, doc) VALUES (?1, ?2)"
         " ON CONFLICT (key) DO UPDATE SET doc = excluded.doc"},
        {&erase_, "DELETE FROM baton_lock WHERE key = ?1"},
        {&set_counter_, "UPDATE baton_meta SET counter = ?1"},
        {&set_boot_, "UPDATE baton_meta SET boot_id = ?1, time_namespace = ?2"},
        {&visit_, "SELECT key, doc FROM baton_lock WHERE key >= ?1 ORDER BY key"}}) {
    auto prepared = database_->prepare(sql);
    if (!prepared) return prepared.error();
    *statement = std::move(*prepared);
  }
  return {};
}

Result<LockFile::State> LockFile::enter() {
  if (database_->moved()) {
    return refuse(database_->path() +
                  " was deleted or replaced while in use: end all programs that use it");
  }
  const Rewind rewind(meta_);
  auto row = meta_.start().step();
  if (!row) return row.error();
  if (!*row) return refuse(database_->path() + " has lost its baton_meta row: restore a backup");
  if (meta_.integer(0) != kSchemaVersion) return newer_schema(database_->path(), meta_.integer(0));
  State state;
  state.counter = static_cast<std::uint64_t>(meta_.integer(1));
  state.other_boot = meta_.text(2) != machine_.boot_id;
  if (!state.other_boot && meta_.text(3) != machine_.time_namespace) {
    return refuse(database_->path() + " is used from time namespace " + std::string(meta_.text(3)) +
                  ", this process is in " + machine_.time_namespace +
                  ": their clocks differ, run all its users in one");
  }
  return state;
}

Result<void> LockFile::adopt(core::StoreTime now) {
  std::vector<std::pair<std::string, std::string>> rows;
  auto visited = visit({}, [&](std::string_view key, std::string_view text) {
    auto state = core::from_document(text);
    // A damaged one is left as it is: refused, whatever the time.
    if (!state) return true;
    start_periods_again(*state, now);
    rows.emplace_back(key, core::to_document(*state));
    return true;
  });
  if (!visited) return visited;
  for (const auto& [key, text] : rows) {
    if (auto saved = save(key, text); !saved) return saved;
  }
  return set_boot_
      .start(std::string_view(machine_.boot_id), std::string_view(machine_.time_namespace))
      .run();
}

Result<std::optional<std::string>> LockFile::document(std::string_view key) {
  const Rewind rewind(document_);
  auto row = document_.start(key).step();
  if (!row) return row.error();
  if (!*row) return std::optional<std::string>();
  return std::optional<std::string>(document_.text(0));
}

Result<void> LockFile::save(std::string_view key, std::string_view document) {
  return save_.start(key, document).run();
}

Result<void> LockFile::erase(std::string_view key) { return erase_.start(key).run(); }

Result<void> LockFile::set_counter(std::uint64_t counter) {
  return set_counter_.start(static_cast<std::int64_t>(counter)).run();
}

Result<void> LockFile::visit(std::string_view first, const Visitor& visitor) {
  const Rewind rewind(visit_);
  visit_.start(first);
  while (true) {
    auto row = visit_.step();
    if (!row) return row.error();
    if (!*row || !visitor(visit_.text(0), visit_.text(1))) return {};
  }
}

}  // namespace baton::store::sqlite
