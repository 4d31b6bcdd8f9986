#include "store/sqlite/database.h"

#include <cerrno>
#include <cstring>

#include <algorithm>
#include <thread>

#include <sqlite3.h>

namespace baton::store::sqlite {
namespace {

using std::chrono::microseconds;

Error operator_must_act(std::string message) {
  return {.code = Code::bad_store, .message = std::move(message)};
}

Error try_later(std::string message) {
  return {.code = Code::unavailable, .message = std::move(message), .retryable = true};
}

bool disk_is_full(int code, int system_error) {
  return (code & 0xff) == SQLITE_FULL || system_error == ENOSPC || system_error == EDQUOT ||
         system_error == EFBIG;
}

bool out_of_descriptors(int system_error) {
  return system_error == EMFILE || system_error == ENFILE;
}

bool not_permitted(int system_error) { return system_error == EACCES || system_error == EPERM; }

// libsqlite3 speaks of its own source lines in some messages; ours stay on one line.
std::string one_line(std::string_view text) {
  std::string line(text);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

Error explain(int code, const std::string& path, std::string_view detail, int system_error) {
  const std::string because = system_error != 0 ? std::strerror(system_error) : one_line(detail);
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
      return try_later(path + " is busy: another process kept it past the deadline; try again");
    case SQLITE_NOTADB:
      return operator_must_act(path + " is not an SQLite database: name another file");
    case SQLITE_CORRUPT:
      return operator_must_act(path + " is damaged: restore it from a backup and raise its tokens");
    case SQLITE_READONLY:
      return operator_must_act(path +
                               " is read-only: let this user write the file and its directory");
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      if (disk_is_full(code, system_error)) {
        return try_later("no space for " + path + ": free some on its disk, then try again");
      }
      if (not_permitted(system_error)) {
        return {
            .code = Code::unauthorized,
            .message = path + " is not allowed: let this user write the file and its directory"};
      }
      if ((code & 0xff) == SQLITE_CANTOPEN && !out_of_descriptors(system_error)) {
        return operator_must_act(path + " cannot be opened (" + because +
                                 "): check that it is a file in a writable directory");
      }
      return try_later(path + " failed (" + because + ")" +
                       (out_of_descriptors(system_error) ? "" : ": check its disk"));
    case SQLITE_NOMEM: return try_later("no memory to use " + path);
    default: return operator_must_act(path + ": " + one_line(detail));
  }
}

Error explain(sqlite3* connection, int code) {
  const int last_error = errno;
  const char* path = sqlite3_db_filename(connection, "main");
  int system_error = 0;
  if (const int kind = code & 0xff; kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN) {
    system_error = sqlite3_system_errno(connection);
    if (system_error == 0) system_error = last_error;
  }
  return explain(code, path != nullptr && *path != '\0' ? path : "the database",
                 sqlite3_errmsg(connection), system_error);
}

bool has_moved(sqlite3* connection) {
  int moved = 0;
  const int code = sqlite3_file_control(connection, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  return code == SQLITE_OK && moved != 0;
}

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Result<Statement> Statement::prepare(sqlite3* connection, std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v3(connection, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
  if (code != SQLITE_OK) return explain(connection, code);
  Statement statement;
  statement.statement_.reset(raw);
  return statement;
}

void Statement::bind(int index, std::string_view text) {
  // A null pointer would bind NULL instead of the empty text.
  const char* data = text.data() == nullptr ? "" : text.data();
  sqlite3_bind_text64(statement_.get(), index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

void Statement::bind(int index, std::int64_t number) {
  sqlite3_bind_int64(statement_.get(), index, number);
}

void Statement::bind(int index, Blob blob) {
  const char* data = blob.bytes.data() == nullptr ? "" : blob.bytes.data();
  sqlite3_bind_blob64(statement_.get(), index, data, blob.bytes.size(), SQLITE_STATIC);
}

Result<bool> Statement::step() {
  errno = 0;
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) {
    reset();
    return false;
  }
  Error error = explain(sqlite3_db_handle(statement_.get()), code);
  reset();
  return error;
}

Result<void> Statement::run() {
  const Rewind rewind(*this);
  while (true) {
    auto row = step();
    if (!row) return row.error();
    if (!*row) return {};
  }
}

void Statement::reset() { sqlite3_reset(statement_.get()); }

std::string_view Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::string_view Statement::bytes(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

void Database::Close::operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }

// Short naps: a transaction of ours lasts tens of microseconds, a checkpoint some milliseconds.
int Database::on_busy(void* self, int tries) {
  const auto& database = *static_cast<Database*>(self);
  const auto left = database.deadline_ - BootClock::now();
  if (left <= left.zero()) return 0;
  const BootClock::duration nap =
      database.fair_
          ? microseconds(tries == 0 ? 50 : std::max(100, 1'600 >> std::min(tries / 2, 4)))
          : microseconds(50) * (1 << std::min(tries, 5));
  std::this_thread::sleep_for(std::min(left, nap));
  return 1;
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Deadline deadline) {
  std::unique_ptr<Database> database(new Database(path, deadline));
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  database->connection_.reset(raw);
  if (code != SQLITE_OK) {
    return explain(code, path, raw != nullptr ? sqlite3_errmsg(raw) : sqlite3_errstr(code),
                   raw != nullptr ? sqlite3_system_errno(raw) : 0);
  }
  if (sqlite3_db_readonly(raw, "main") == 1) return explain(SQLITE_READONLY, path, {}, 0);
  sqlite3_busy_handler(raw, &Database::on_busy, database.get());
  // sync() does the rest, where it is needed.
  if (auto set = database->execute("PRAGMA synchronous = NORMAL"); !set) return set.error();
  for (auto [statement, sql] : {std::pair{&database->begin_read_, "BEGIN"},
                                {&database->begin_write_, "BEGIN IMMEDIATE"},
                                {&database->commit_, "COMMIT"},
                                {&database->rollback_, "ROLLBACK"}}) {
    auto prepared = database->prepare(sql);
    if (!prepared) return prepared.error();
    *statement = std::move(*prepared);
  }
  return database;
}

Result<Statement> Database::prepare(std::string_view sql) {
  return Statement::prepare(connection_.get(), sql);
}

Result<void> Database::execute(std::string_view script) {
  const std::string text(script);
  const int code = sqlite3_exec(connection_.get(), text.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return explain(connection_.get(), code);
  return {};
}

Result<std::string> Database::ask(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  auto row = statement->step();
  if (!row) return row.error();
  return *row ? std::string(statement->text(0)) : std::string();
}

Result<void> Database::use_wal() {
  auto mode = ask("PRAGMA journal_mode");
  if (!mode) return mode.error();
  // The switch answers `busy` without asking the busy handler, so it is asked here.
  for (int tries = 0; *mode != "wal"; ++tries) {
    mode = ask("PRAGMA journal_mode = WAL");
    if (mode && *mode == "wal") break;
    if (mode) {
      return Error{.code = Code::bad_store,
                   .message = path_ +
                              ": its filesystem cannot share memory between processes, as "
                              "write-ahead logging needs; use a local disk"};
    }
    if (mode.error().code != Code::unavailable || on_busy(this, tries) == 0) return mode.error();
    mode = std::string();
  }
  return {};
}

// The connection itself commits with synchronous=NORMAL, which writes the log but leaves it to the
// operating system. This is the fsync that synchronous=FULL would have added to the commit: of the
// whole log, so of all commits before it, by any process. Having it apart means that it is spent
// on exactly the batches that need it, and while no other process waits for the write lock.
Result<void> Database::sync() {
  sqlite3_file* log = nullptr;
  int code = sqlite3_file_control(connection_.get(), "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (code == SQLITE_OK && (log == nullptr || log->pMethods == nullptr)) code = SQLITE_IOERR_FSYNC;
  if (code == SQLITE_OK) code = log->pMethods->xSync(log, SQLITE_SYNC_NORMAL);
  if (code == SQLITE_OK) return {};
  Error error = explain(code, path_, "cannot be flushed", errno);
  error.in_doubt = true;
  return error;
}

std::int64_t Database::changes() const { return sqlite3_changes64(connection_.get()); }

std::int64_t Database::last_rowid() const { return sqlite3_last_insert_rowid(connection_.get()); }

bool Database::moved() { return has_moved(connection_.get()); }

Result<Transaction> Transaction::begin(Database& database, Kind kind) {
  Statement& begin = kind == Kind::write ? database.begin_write_ : database.begin_read_;
  if (auto begun = begin.start().run(); !begun) return begun.error();
  return Transaction(database);
}

Transaction::~Transaction() {
  if (database_ == nullptr) return;
  // Some errors have rolled back already; a second time would only fail.
  if (sqlite3_get_autocommit(database_->connection_.get()) != 0) return;
  (void)database_->rollback_.start().run();
}

Result<void> Transaction::commit() {
  auto done = database_->commit_.start().run();
  if (done) {
    database_ = nullptr;
    return {};
  }
  Error error = std::move(done.error());
  // A commit record that was written but reported as failed may be found by the next recovery. One
  // for which there was no space cannot.
  const bool no_space = (sqlite3_errcode(database_->connection_.get()) & 0xff) == SQLITE_FULL;
  error.in_doubt = error.code == Code::unavailable && !no_space;
  return error;
}

}  // namespace baton::store::sqlite
