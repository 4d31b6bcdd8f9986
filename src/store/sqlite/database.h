#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "baton/clock.h"
#include "baton/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace baton::store::sqlite {

// The error that an SQLite result code means to a user of the file `path`, with one line that says
// what to do. `system_error` is the errno behind it, or 0.
[[nodiscard]] Error explain(int code, const std::string& path, std::string_view detail,
                            int system_error);
[[nodiscard]] BATON_EXPORT Error explain(sqlite3* connection, int code);

// Whether the file was deleted or replaced behind the back of the connection: another process may
// be using another file of that name. Costs a stat.
[[nodiscard]] BATON_EXPORT bool has_moved(sqlite3* connection);

// Bytes that are no text: a BLOB.
struct Blob {
  std::string_view bytes;
};

// A prepared statement, kept and run again. Not thread-safe, like its connection.
class BATON_EXPORT Statement {
 public:
  Statement() = default;
  [[nodiscard]] static Result<Statement> prepare(sqlite3* connection, std::string_view sql);

  // Starts over with these values for ?1, ?2, … Text must live until the statement is done.
  template <typename... Values>
  Statement& start(const Values&... values) {
    reset();
    [[maybe_unused]] int index = 0;
    (bind(++index, values), ...);
    return *this;
  }

  // True: there is a row. False: done, and reset. An error resets too.
  [[nodiscard]] Result<bool> step();

  // For a statement that gives no rows, or none that matter.
  [[nodiscard]] Result<void> run();
  void reset();

  // Of the current row; text and bytes are valid until the next step or reset.
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::string_view bytes(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;

 private:
  void bind(int index, std::string_view text);
  void bind(int index, std::int64_t number);
  void bind(int index, Blob blob);

  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// Resets a statement that may be left before its last row, so that it keeps no transaction open.
class Rewind {
 public:
  explicit Rewind(Statement& statement) : statement_(statement) {}
  ~Rewind() { statement_.reset(); }
  Rewind(const Rewind&) = delete;
  Rewind& operator=(const Rewind&) = delete;

 private:
  Statement& statement_;
};

// One connection. Not thread-safe: its owner guards it.
class BATON_EXPORT Database {
 public:
  // The file must be there. Refuses one that cannot be written.
  [[nodiscard]] static Result<std::unique_ptr<Database>> open(const std::string& path,
                                                              Deadline deadline);

  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Until then, calls wait for the transactions of others instead of answering `busy`.
  void wait_until(Deadline deadline) { deadline_ = deadline; }

  // From now on a wait asks more often the longer it lasts. For connections that write all the
  // time: otherwise those that just wrote come first again, and one that waits may get nothing.
  void wait_fairly() { fair_ = true; }

  [[nodiscard]] Result<Statement> prepare(std::string_view sql);
  [[nodiscard]] Result<void> execute(std::string_view script);

  // The first column of the first row as text; empty without a row.
  [[nodiscard]] Result<std::string> ask(std::string_view sql);

  // Write-ahead logging, which is kept in the file. Waits for others to finish first.
  [[nodiscard]] Result<void> use_wal();

  // Makes every commit so far survive a crash of the machine.
  [[nodiscard]] Result<void> sync();

  // How many rows the last INSERT, UPDATE or DELETE changed.
  [[nodiscard]] std::int64_t changes() const;
  [[nodiscard]] std::int64_t last_rowid() const;

  // As has_moved.
  [[nodiscard]] bool moved();

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  friend class Transaction;
  Database(std::string path, Deadline deadline) : path_(std::move(path)), deadline_(deadline) {}
  static int on_busy(void* self, int tries);

  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::string path_;
  Deadline deadline_;
  bool fair_ = false;
  std::unique_ptr<sqlite3, Close> connection_;
  Statement begin_read_;
  Statement begin_write_;
  Statement commit_;
  Statement rollback_;
};

// Rolled back at the end of the scope unless committed.
class BATON_EXPORT Transaction {
 public:
  enum class Kind : std::uint8_t { read, write };

  [[nodiscard]] static Result<Transaction> begin(Database& database, Kind kind);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  [[nodiscard]] Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace baton::store::sqlite
