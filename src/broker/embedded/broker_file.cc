#include "broker/embedded/broker_file.h"

#include "broker/embedded/schema.sql.h"
#include "store/sqlite/location.h"

namespace baton::broker {
namespace {

constexpr int kVersion = 1;
constexpr std::string_view kApplication = "1113875531";  // "BdtK" as a number, in the file's header

Error refused(std::string message) {
  return {.code = Code::bad_store, .message = std::move(message)};
}

Result<void> make_tables(Database& database) {
  auto transaction = Transaction::begin(database, Transaction::Kind::write);
  if (!transaction) return transaction.error();
  auto application = database.ask("PRAGMA application_id");
  if (!application) return application.error();
  auto version = database.ask("PRAGMA user_version");
  if (!version) return version.error();
  if (*application == kApplication) {
    if (*version == std::to_string(kVersion)) return {};
    return refused(database.path() + " was made by a newer Baton: its version is " + *version +
                   ", this one knows " + std::to_string(kVersion));
  }
  auto tables = database.ask("SELECT count(*) FROM sqlite_schema");
  if (!tables) return tables.error();
  if (*tables != "0" || *application != "0") {
    return refused(database.path() +
                   " is a database of something else: a broker needs a file of its own");
  }
  std::string script(embedded::broker_embedded::schema_sql);
  script += ";PRAGMA application_id = " + std::string(kApplication) +
            ";PRAGMA user_version = " + std::to_string(kVersion);
  if (auto made = database.execute(script); !made) return made;
  return transaction->commit();
}

}  // namespace

Result<std::unique_ptr<Database>> open_broker_file(const std::string& path, Deadline by) {
  if (auto prepared = store::sqlite::prepare_file(path); !prepared) return prepared.error();
  auto database = Database::open(path, by);
  if (!database) return database;
  (*database)->wait_fairly();
  if (auto wal = (*database)->use_wal(); !wal) return wal.error();
  // After a burst the log is cut to this again.
  if (auto set = (*database)->execute("PRAGMA journal_size_limit = 16777216"); !set) {
    return set.error();
  }
  auto application = (*database)->ask("PRAGMA application_id");
  if (!application) return application.error();
  auto version = (*database)->ask("PRAGMA user_version");
  if (!version) return version.error();
  if (*application == kApplication && *version == std::to_string(kVersion)) return database;
  if (auto made = make_tables(**database); !made) return made.error();
  return database;
}

Error moved_away(Database& database) {
  return refused(database.path() + " was deleted or replaced while it was in use");
}

Result<Transaction> begin_write(Database& database, Deadline by) {
  database.wait_until(by);
  if (database.moved()) return moved_away(database);
  return Transaction::begin(database, Transaction::Kind::write);
}

}  // namespace baton::broker
