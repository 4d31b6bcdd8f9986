#include "apps/gateway/sqlite.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include <sqlite3.h>

#include "apps/common/transaction.h"

namespace baton::gateway {
namespace {

constexpr int kBusyMillis = 5000;

struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Statement = std::unique_ptr<sqlite3_stmt, Finalize>;

int bind(sqlite3_stmt* statement, int index, const Sqlite::Value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return sqlite3_bind_int64(statement, index, *number);
  }
  const auto& text = std::get<std::string>(value);
  return sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC,
                             SQLITE_UTF8);
}

Sqlite::Row read_row(sqlite3_stmt* statement) {
  Sqlite::Row row;
  for (int i = 0; i < sqlite3_column_count(statement); ++i) {
    if (sqlite3_column_type(statement, i) == SQLITE_INTEGER) {
      row.emplace_back(std::int64_t{sqlite3_column_int64(statement, i)});
    } else {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
      row.emplace_back(text == nullptr ? std::string() : std::string(text, size));
    }
  }
  return row;
}

// Makes a missing file readable by this user alone, whatever the umask. What SQLite puts beside it
// gets the mode of the file. If this fails, sqlite3_open says why.
void make_private(const std::string& path) {
  const int fd = ::open(path.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
}

}  // namespace

void Sqlite::Close::operator()(sqlite3* connection) const { sqlite3_close(connection); }

Error Sqlite::problem(std::string_view doing) const {
  const int code = sqlite3_errcode(connection_.get()) & 0xFF;
  const bool passes = code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_FULL ||
                      code == SQLITE_IOERR || code == SQLITE_NOMEM;
  return {
      .code = passes ? Code::unavailable : Code::bad_store,
      .message = "objects: cannot " + std::string(doing) + ": " + sqlite3_errmsg(connection_.get()),
      .retryable = passes};
}

Result<std::unique_ptr<Sqlite>> Sqlite::open(const std::string& path) {
  make_private(path);
  sqlite3* opened = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
  std::unique_ptr<Sqlite> database(new Sqlite(opened));
  if (code != SQLITE_OK) return database->problem("open " + path);
  sqlite3_busy_timeout(opened, kBusyMillis);
  if (auto ok = database->use_wal(); !ok) return ok.error();
  return database;
}

// Changing the mode answers "busy" at once, whatever the timeout, while others open the file too.
Result<void> Sqlite::use_wal() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kBusyMillis);
  while (true) {
    auto ok = script("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    if (ok || !ok.error().retryable || std::chrono::steady_clock::now() > until) return ok;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<void> Sqlite::script(const std::string& sql) {
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return {};
  }
  return problem("write");
}

Result<std::vector<Sqlite::Row>> Sqlite::query(std::string_view sql,
                                               const std::vector<Value>& values) {
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()), &prepared,
                         nullptr) != SQLITE_OK) {
    return problem("ask");
  }
  const Statement statement(prepared);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (bind(prepared, static_cast<int>(i) + 1, values[i]) != SQLITE_OK) return problem("ask");
  }
  std::vector<Row> rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) rows.push_back(read_row(prepared));
  if (code != SQLITE_DONE) return problem("use the file");
  return rows;
}

Result<void> Sqlite::transaction(const std::function<Result<void>()>& body) {
  return apps::in_transaction([this](const std::string& sql) { return script(sql); },
                              "BEGIN IMMEDIATE", body);
}

std::int64_t Sqlite::changes() const { return sqlite3_changes64(connection_.get()); }

}  // namespace baton::gateway
