#include <chrono>
#include <thread>

#include <sqlite3.h>

#include "apps/warehouse/open_database.h"
#include "baton/fence.h"

namespace baton::warehouse {
namespace {

using Clock = std::chrono::steady_clock;

struct Close {
  void operator()(sqlite3* connection) const { sqlite3_close(connection); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(sqlite3* connection, DatabaseOptions options)
      : connection_(connection), options_(std::move(options)) {}

  Result<void> set_up(int code, const std::string& path);
  Result<std::vector<Row>> query(const std::string& sql, const std::vector<Value>& values) override;
  Result<void> script(const std::string& sql) override;
  Result<void> install_fence() override { return baton::install_fence(connection_.get()); }
  Result<void> fence(const Guard& guard) override {
    return baton::fence(connection_.get(), guard.tokens);
  }
  [[nodiscard]] bool still_there() override { return true; }
  [[nodiscard]] Kind kind() const override { return Kind::sqlite; }

 private:
  static int late(void* self);
  void start_timer() { deadline_ = Clock::now() + options_.statement_timeout; }
  Result<void> bind(sqlite3_stmt* statement, const std::vector<Value>& values) const;
  [[nodiscard]] Error problem(std::string_view doing) const;

  std::unique_ptr<sqlite3, Close> connection_;
  const DatabaseOptions options_;
  Clock::time_point deadline_;
};

int SqliteDatabase::late(void* self) {
  return Clock::now() > static_cast<SqliteDatabase*>(self)->deadline_ ? 1 : 0;
}

Error SqliteDatabase::problem(std::string_view doing) const {
  const int code = sqlite3_errcode(connection_.get()) & 0xFF;
  const bool passes = code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_FULL ||
                      code == SQLITE_IOERR || code == SQLITE_NOMEM || code == SQLITE_INTERRUPT ||
                      code == SQLITE_CANTOPEN;
  return {.code = passes ? Code::unavailable : Code::bad_store,
          .message = "cannot " + std::string(doing) + " the " + options_.what + ": " +
                     sqlite3_errmsg(connection_.get()),
          .retryable = passes};
}

Result<void> SqliteDatabase::set_up(int code, const std::string& path) {
  if (code != SQLITE_OK) return problem("open " + path + ",");
  constexpr int kStepsBetweenLooks = 10'000;
  sqlite3_busy_timeout(connection_.get(), static_cast<int>(options_.statement_timeout.count()));
  sqlite3_progress_handler(connection_.get(), kStepsBetweenLooks, &late, this);
  if (options_.only_read) return script("PRAGMA query_only = ON");
  // Changing the mode answers "busy" at once, whatever the timeout, while others open it too.
  const auto until = Clock::now() + options_.statement_timeout;
  while (true) {
    auto ok = script("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL");
    if (ok || !ok.error().retryable || Clock::now() > until) return ok;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Result<void> SqliteDatabase::script(const std::string& sql) {
  start_timer();
  if (sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) {
    return {};
  }
  return problem("use");
}

Result<void> SqliteDatabase::bind(sqlite3_stmt* statement, const std::vector<Value>& values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int index =
        sqlite3_bind_parameter_index(statement, ("$" + std::to_string(i + 1)).c_str());
    int code = SQLITE_OK;
    if (const auto* whole = std::get_if<std::int64_t>(&values[i])) {
      code = sqlite3_bind_int64(statement, index, *whole);
    } else {
      const auto& text = std::get<std::string>(values[i]);
      code = sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
    }
    if (code != SQLITE_OK) return problem("ask");
  }
  return {};
}

Database::Row read_row(sqlite3_stmt* statement) {
  Database::Row row;
  for (int i = 0; i < sqlite3_column_count(statement); ++i) {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
    const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
    row.emplace_back(text == nullptr ? std::string() : std::string(text, size));
  }
  return row;
}

Result<std::vector<Database::Row>> SqliteDatabase::query(const std::string& sql,
                                                         const std::vector<Value>& values) {
  start_timer();
  sqlite3_stmt* prepared = nullptr;
  if (sqlite3_prepare_v2(connection_.get(), sql.data(), static_cast<int>(sql.size()), &prepared,
                         nullptr) != SQLITE_OK) {
    return problem("ask");
  }
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(prepared);
  if (auto ok = bind(prepared, values); !ok) return ok.error();
  std::vector<Row> rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(prepared)) == SQLITE_ROW) rows.push_back(read_row(prepared));
  if (code != SQLITE_DONE) return problem("use");
  return rows;
}

}  // namespace

Result<std::unique_ptr<Database>> open_sqlite(const std::string& path,
                                              const DatabaseOptions& options) {
  sqlite3* opened = nullptr;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (options.only_read ? 0 : SQLITE_OPEN_CREATE);
  const int code = sqlite3_open_v2(path.c_str(), &opened, flags, nullptr);
  auto database = std::make_unique<SqliteDatabase>(opened, options);
  if (auto ok = database->set_up(code, path); !ok) return ok.error();
  return std::unique_ptr<Database>(std::move(database));
}

}  // namespace baton::warehouse
