#pragma once

#include <map>
#include <memory>
#include <string>

#include "sql/connection.h"

struct sqlite3_stmt;

namespace baton::sql {

// A connection to an SQLite file on a local disk.
class SqliteConnection final : public Connection {
 public:
  static Result<std::unique_ptr<Connection>> open(const std::string& url, Options options,
                                                  Deadline by);

  [[nodiscard]] bool still_there() override { return check_there().has_value(); }
  [[nodiscard]] bool idle() const override;
  [[nodiscard]] bool in_own_transaction() const override;
  [[nodiscard]] Kind kind() const override { return Kind::sqlite; }
  [[nodiscard]] sqlite3* sqlite() const override { return connection_.get(); }

 protected:
  Result<Rows> run(const std::string& sql, const Values& values, Deadline by) override;
  Result<Rows> run(const Statement& statement, const Values& values, Deadline by) override;
  Result<void> run_script(const std::string& sql, Deadline by) override;
  Result<void> begin(Deadline by) override;
  Result<void> commit(Deadline by) override;
  Result<void> rollback(Deadline by) override;
  Result<void> fence(std::span<const FenceToken> tokens, Deadline by) override;

 private:
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  using Prepared = std::unique_ptr<sqlite3_stmt, Finalize>;

  explicit SqliteConnection(Options options) : Connection(std::move(options)) {}
  Result<void> open_file(const std::string& path, Deadline by);
  Result<void> use_wal(const std::string& path, Deadline by);
  Result<Prepared> prepare(const std::string& sql, unsigned flags);
  Result<Rows> step(sqlite3_stmt* statement, const Values& values);
  Result<void> bind(sqlite3_stmt* statement, const Values& values);
  int bind(sqlite3_stmt* statement, int index, const Value& value);
  [[nodiscard]] Error problem(int code) const;
  // "name: …", unless the message begins with the name.
  [[nodiscard]] Error named(Error error) const;
  // An error, and no longer usable, if the file was deleted or replaced meanwhile: what is written
  // into it then, nobody reads.
  Result<void> check_there();
  // The same outside of transactions; in one, its COMMIT asks.
  Result<void> check_there_if_idle();
  static int on_busy(void* self, int tries);
  static int on_commit(void* self);
  static void on_rollback(void* self);
  static int on_progress(void* self);

  // The deadline of a call, for the two handlers while it runs.
  class Within {
   public:
    Within(SqliteConnection& connection, Deadline by) : connection_(connection) {
      connection_.deadline_ = by;
    }
    ~Within() { connection_.deadline_.reset(); }
    Within(const Within&) = delete;
    Within& operator=(const Within&) = delete;

   private:
    SqliteConnection& connection_;
  };
  std::optional<Deadline> deadline_;
  Deadline foreign_deadline_;       // of a wait in somebody else's use of sqlite()
  std::uint64_t ended_ = 0;         // transactions
  std::uint64_t ended_before_ = 0;  // the one that was begun last
  std::unique_ptr<sqlite3, Close> connection_;
  std::map<std::uint64_t, Prepared> prepared_;  // by id; they end before the connection
};

}  // namespace baton::sql
