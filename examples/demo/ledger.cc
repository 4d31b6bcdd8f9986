#include "ledger.h"

#include <sqlite3.h>

#include <stdexcept>

#include "baton/fence.h"

namespace demo {

Ledger::Ledger(const std::string& path) {
  if (sqlite3_open(path.c_str(), &database_) != SQLITE_OK) {
    throw std::runtime_error("cannot open " + path);
  }
  sqlite3_busy_timeout(database_, 30'000);
}

Ledger::~Ledger() { sqlite3_close(database_); }

void Ledger::run(const std::string& sql) const {
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sql + ": " + sqlite3_errmsg(database_));
  }
}

// No unique key on unit: work that is done twice must show.
void Ledger::create() {
  run("PRAGMA journal_mode = WAL");
  run("CREATE TABLE done (unit INTEGER, worker TEXT, token INTEGER)");
  run("CREATE TABLE refused (unit INTEGER, worker TEXT, token INTEGER)");
  baton::install_fence(database_).value();
}

void Ledger::insert(const char* table, int unit, const std::string& worker,
                    baton::Token token) const {
  sqlite3_stmt* statement = nullptr;
  const std::string sql = "INSERT INTO " + std::string(table) + " VALUES (?, ?, ?)";
  sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr);
  sqlite3_bind_int(statement, 1, unit);
  sqlite3_bind_text(statement, 2, worker.c_str(), -1, SQLITE_TRANSIENT);
  sqlite3_bind_int64(statement, 3, static_cast<sqlite3_int64>(token));
  const int result = sqlite3_step(statement);
  sqlite3_finalize(statement);
  if (result != SQLITE_DONE) throw std::runtime_error(sqlite3_errmsg(database_));
}

bool Ledger::write(int unit, const std::string& worker, const baton::Lease& lease) {
  run("BEGIN IMMEDIATE");
  const auto allowed = baton::fence(database_, lease);
  if (allowed) {
    insert("done", unit, worker, lease.token());
    run("COMMIT");
    return true;
  }
  run("ROLLBACK");
  if (allowed.error().code != baton::Code::fenced) {
    throw std::runtime_error(allowed.error().message);
  }
  insert("refused", unit, worker, lease.token());
  return false;
}

bool Ledger::can_write() const {
  sqlite3_busy_timeout(database_, 500);
  const bool begun =
      sqlite3_exec(database_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
  if (begun) run("ROLLBACK");
  sqlite3_busy_timeout(database_, 30'000);
  return begun;
}

std::vector<Entry> Ledger::read(const char* sql) const {
  std::vector<Entry> entries;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_, sql, -1, &statement, nullptr) != SQLITE_OK) {
    throw std::runtime_error(sqlite3_errmsg(database_));
  }
  while (sqlite3_step(statement) == SQLITE_ROW) {
    entries.push_back({sqlite3_column_int(statement, 0),
                       reinterpret_cast<const char*>(sqlite3_column_text(statement, 1)),
                       static_cast<baton::Token>(sqlite3_column_int64(statement, 2))});
  }
  sqlite3_finalize(statement);
  return entries;
}

bool Ledger::is_done(int unit) const {
  for (const Entry& entry : done()) {
    if (entry.unit == unit) return true;
  }
  return false;
}

std::vector<Entry> Ledger::done() const { return read("SELECT unit, worker, token FROM done"); }

std::vector<Entry> Ledger::refused() const {
  return read("SELECT unit, worker, token FROM refused");
}

}  // namespace demo
