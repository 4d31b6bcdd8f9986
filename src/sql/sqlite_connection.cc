#include "sql/sqlite_connection.h"

#include <algorithm>
#include <thread>

#include <sqlite3.h>
#include <sys/stat.h>

#include "baton/fence.h"
#include "store/sqlite/database.h"
#include "store/sqlite/location.h"

namespace baton::sql {
namespace {

using std::chrono::microseconds;

constexpr int kStepsBetweenLooks = 10'000;  // of the virtual machine, at the clock

Values read_row(sqlite3_stmt* statement) {
  Values row;
  const int columns = sqlite3_column_count(statement);
  row.reserve(static_cast<std::size_t>(columns));
  for (int i = 0; i < columns; ++i) {
    const auto copy = [&](const void* data) {
      const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, i));
      return data == nullptr ? std::string() : std::string(static_cast<const char*>(data), size);
    };
    switch (sqlite3_column_type(statement, i)) {
      case SQLITE_INTEGER:
        row.emplace_back(std::int64_t{sqlite3_column_int64(statement, i)});
        break;
      case SQLITE_FLOAT: row.emplace_back(sqlite3_column_double(statement, i)); break;
      case SQLITE_BLOB: row.emplace_back(Bytes{copy(sqlite3_column_blob(statement, i))}); break;
      case SQLITE_NULL: row.emplace_back(); break;
      default: row.emplace_back(copy(sqlite3_column_text(statement, i)));
    }
  }
  return row;
}

}  // namespace

void SqliteConnection::Close::operator()(sqlite3* connection) const {
  sqlite3_close_v2(connection);
}
void SqliteConnection::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

Result<std::unique_ptr<Connection>> SqliteConnection::open(const std::string& url, Options options,
                                                           Deadline by) {
  const auto path = store::sqlite::path_of(url);
  if (!path) return path.error();
  if (options.name.empty()) options.name = *path;
  struct stat found {};
  if ((options.read_only || !options.create) && ::stat(path->c_str(), &found) != 0) {
    return Error{.code = Code::bad_store, .message = "there is no file " + *path};
  }
  if (auto prepared = store::sqlite::prepare_file(*path); !prepared) return prepared.error();
  std::unique_ptr<SqliteConnection> connection(new SqliteConnection(std::move(options)));
  if (auto opened = connection->open_file(*path, by); !opened) return opened.error();
  return std::unique_ptr<Connection>(std::move(connection));
}

Result<void> SqliteConnection::open_file(const std::string& path, Deadline by) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  connection_.reset(raw);
  if (code != SQLITE_OK) return problem(code);
  sqlite3_busy_handler(raw, &on_busy, this);
  sqlite3_progress_handler(raw, kStepsBetweenLooks, &on_progress, this);
  sqlite3_commit_hook(raw, &on_commit, this);
  sqlite3_rollback_hook(raw, &on_rollback, this);
  if (options_.create && !options_.read_only) {
    if (auto wal = use_wal(path, by); !wal) return wal;
  }
  const std::string mode = options_.read_only ? "PRAGMA query_only = ON;" : "";
  // Reading the first page tells a database from any other file.
  return run_script(mode + "PRAGMA synchronous = FULL; SELECT 1 FROM sqlite_schema", by);
}

Result<void> SqliteConnection::use_wal(const std::string& path, Deadline by) {
  // The switch does not ask the busy handler.
  for (int tries = 0;; ++tries) {
    auto mode = run("PRAGMA journal_mode = WAL", {}, by);
    if (mode && !mode->empty() && mode->front().text(0) == "wal") return {};
    if (mode) {
      return Error{.code = Code::bad_store,
                   .message = path +
                              ": its filesystem cannot share memory between processes, as "
                              "write-ahead logging needs; use a local disk"};
    }
    const Within within(*this, by);
    if (!mode.error().retryable || on_busy(this, tries) == 0) return mode.error();
  }
}

// After a first short nap, naps get shorter with time, so that of all waiting connections the
// one that has waited longest asks most often.
int SqliteConnection::on_busy(void* self, int tries) {
  auto& connection = *static_cast<SqliteConnection*>(self);
  const Instant now = BootClock::now();
  if (tries == 0) connection.foreign_deadline_ = now + connection.options_.statement_timeout;
  const auto left = connection.deadline_.value_or(connection.foreign_deadline_) - now;
  if (left <= left.zero()) return 0;
  const BootClock::duration nap =
      tries == 0 ? microseconds(50) : microseconds(std::max(200, 1'600 >> std::min(tries / 4, 3)));
  std::this_thread::sleep_for(std::min(left, nap));
  return 1;
}

int SqliteConnection::on_commit(void* self) {
  ++static_cast<SqliteConnection*>(self)->ended_;
  return 0;
}

void SqliteConnection::on_rollback(void* self) { ++static_cast<SqliteConnection*>(self)->ended_; }

int SqliteConnection::on_progress(void* self) {
  const auto& deadline = static_cast<SqliteConnection*>(self)->deadline_;
  return deadline && BootClock::now() > *deadline ? 1 : 0;
}

Error SqliteConnection::problem(int code) const {
  switch (code & 0xff) {
    case SQLITE_INTERRUPT:
      return {.code = Code::unavailable, .message = about("no answer in time"), .retryable = true};
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_TOOBIG:
    case SQLITE_RANGE:
      return {.code = Code::bad_request, .message = about(sqlite3_errmsg(connection_.get()))};
    default: break;
  }
  return named(store::sqlite::explain(connection_.get(), code));
}

// It begins with the path, which is also the name of a database without one.
Error SqliteConnection::named(Error error) const {
  if (!error.message.starts_with(options_.name)) error.message = about(error.message);
  return error;
}

Result<void> SqliteConnection::check_there() {
  if (auto usable = check_usable(); !usable) return usable;
  if (!store::sqlite::has_moved(connection_.get())) return {};
  usable_ = false;
  return named({.code = Code::unavailable,
                .message = std::string(sqlite3_db_filename(connection_.get(), "main")) +
                           " was deleted or replaced while in use",
                .retryable = true});
}

Result<void> SqliteConnection::check_there_if_idle() {
  if (sqlite3_get_autocommit(connection_.get()) == 0) return {};
  return check_there();
}

Result<SqliteConnection::Prepared> SqliteConnection::prepare(const std::string& sql,
                                                             unsigned flags) {
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v3(connection_.get(), sql.c_str(),
                                      static_cast<int>(sql.size() + 1), flags, &raw, &tail);
  Prepared statement(raw);
  if (code != SQLITE_OK) return problem(code);
  if (std::string_view(tail).find_first_not_of(" \n\t;") != std::string_view::npos) {
    return Error{.code = Code::bad_request,
                 .message = about("one statement at a time; for several there is script()")};
  }
  return statement;
}

int SqliteConnection::bind(sqlite3_stmt* statement, int index, const Value& value) {
  if (const auto* truth = std::get_if<bool>(&value)) {
    return sqlite3_bind_int(statement, index, *truth ? 1 : 0);
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return sqlite3_bind_int64(statement, index, *whole);
  }
  if (const auto* real = std::get_if<double>(&value)) {
    return sqlite3_bind_double(statement, index, *real);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_STATIC,
                               SQLITE_UTF8);
  }
  if (const auto* bytes = std::get_if<Bytes>(&value)) {
    return sqlite3_bind_blob64(statement, index, bytes->data.data(), bytes->data.size(),
                               SQLITE_STATIC);
  }
  return sqlite3_bind_null(statement, index);
}

Result<void> SqliteConnection::bind(sqlite3_stmt* statement, const Values& values) {
  const auto refused = [&](std::size_t number, const std::string& why) {
    return Error{.code = Code::bad_request,
                 .message = about("$" + std::to_string(number) + " " + why)};
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].index() >= 6) {
      return refused(i + 1, "is an array, which SQLite has not: bind JSON, and use json_each");
    }
    const std::string name = "$" + std::to_string(i + 1);
    const int index = sqlite3_bind_parameter_index(statement, name.c_str());
    if (index == 0) return refused(i + 1, "is bound, but does not occur in the statement");
    if (const int code = bind(statement, index, values[i]); code != SQLITE_OK) return problem(code);
  }
  if (sqlite3_bind_parameter_count(statement) > static_cast<int>(values.size())) {
    return refused(values.size() + 1, "has no value");
  }
  return {};
}

Result<Rows> SqliteConnection::step(sqlite3_stmt* statement, const Values& values) {
  if (statement == nullptr) return Rows();  // a comment
  if (auto bound = bind(statement, values); !bound) return bound.error();
  const auto changes = sqlite3_total_changes64(connection_.get());
  std::vector<Row> rows;
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(statement)) == SQLITE_ROW) rows.emplace_back(read_row(statement));
  if (code != SQLITE_DONE) return problem(code);
  // SQLite's own count stays as it was when a statement writes nothing.
  const bool wrote = sqlite3_total_changes64(connection_.get()) != changes;
  return Rows(std::move(rows), wrote ? sqlite3_changes64(connection_.get()) : 0);
}

Result<Rows> SqliteConnection::run(const std::string& sql, const Values& values, Deadline by) {
  if (auto there = check_there_if_idle(); !there) return there.error();
  const Within within(*this, by);
  auto statement = prepare(sql, 0);
  if (!statement) return statement.error();
  return step(statement->get(), values);
}

Result<Rows> SqliteConnection::run(const Statement& statement, const Values& values, Deadline by) {
  if (auto there = check_there_if_idle(); !there) return there.error();
  const Within within(*this, by);
  auto& prepared = prepared_[statement.id()];
  if (!prepared) {
    auto made = prepare(statement.sql(), SQLITE_PREPARE_PERSISTENT);
    if (!made) return made.error();
    prepared = std::move(*made);
  }
  auto rows = step(prepared.get(), values);
  // The bound values are the caller's, and an unfinished statement would keep its locks.
  sqlite3_reset(prepared.get());
  sqlite3_clear_bindings(prepared.get());
  return rows;
}

Result<void> SqliteConnection::run_script(const std::string& sql, Deadline by) {
  if (auto there = check_there_if_idle(); !there) return there;
  const Within within(*this, by);
  const int code = sqlite3_exec(connection_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return problem(code);
  return {};
}

// A transaction that began as a reader may find later that it can no longer write.
Result<void> SqliteConnection::begin(Deadline by) {
  auto done = run_script(options_.read_only ? "BEGIN" : "BEGIN IMMEDIATE", by);
  ended_before_ = ended_;
  return done;
}

bool SqliteConnection::in_own_transaction() const {
  return sqlite3_get_autocommit(connection_.get()) == 0 && ended_ == ended_before_;
}

Result<void> SqliteConnection::commit(Deadline by) {
  // Some errors roll back by themselves.
  if (auto open = check_open(); !open) return open;
  const Within within(*this, by);
  if (auto there = check_there(); !there) {
    (void)sqlite3_exec(connection_.get(), "ROLLBACK", nullptr, nullptr, nullptr);
    return there;
  }
  const int code = sqlite3_exec(connection_.get(), "COMMIT", nullptr, nullptr, nullptr);
  if (code == SQLITE_OK) return {};
  Error error = problem(code);
  // A commit record that was written but reported as failed may be found by the next recovery.
  error.in_doubt = (code & 0xff) == SQLITE_IOERR;
  return error;
}

Result<void> SqliteConnection::rollback(Deadline by) { return run_script("ROLLBACK", by); }

Result<void> SqliteConnection::fence(std::span<const FenceToken> tokens, Deadline by) {
  const Within within(*this, by);
  return baton::fence(connection_.get(), tokens);
}

bool SqliteConnection::idle() const {
  return usable_ && sqlite3_get_autocommit(connection_.get()) != 0;
}

}  // namespace baton::sql
