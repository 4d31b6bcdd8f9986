#include "locks/sqlite_floor.h"

#include <memory>
#include <stdexcept>
#include <vector>

#include <sqlite3.h>

namespace baton::bench {
namespace {

class Floor {
 public:
  Floor(const std::string& path, int names) : names_(names) {
    check(sqlite3_open(path.c_str(), &database_));
    script(
        "PRAGMA journal_mode = WAL;"
        "CREATE TABLE floor_lock (name TEXT PRIMARY KEY, token INTEGER, expires INTEGER)"
        " WITHOUT ROWID");
    const std::string fill =
        "INSERT INTO floor_lock WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n"
        " WHERE i + 1 < " +
        std::to_string(names) + ") SELECT 'DEFAULT:bench:0:' || i, 0, 0 FROM n";
    script(fill.c_str());
    begin_ = prepare("BEGIN IMMEDIATE");
    commit_ = prepare("COMMIT");
    acquire_ = prepare(
        "UPDATE floor_lock SET token = token + 1, expires = ?2 + 30000 WHERE name = ?1"
        " AND expires <= ?2");
    release_ = prepare("UPDATE floor_lock SET expires = 0 WHERE name = ?1");
  }
  ~Floor() {
    for (sqlite3_stmt* statement : {begin_, commit_, acquire_, release_}) {
      sqlite3_finalize(statement);
    }
    sqlite3_close(database_);
  }
  Floor(const Floor&) = delete;
  Floor& operator=(const Floor&) = delete;

  void pair() {
    const std::string name = "DEFAULT:bench:0:" + std::to_string(next_++ % names_);
    transact("PRAGMA synchronous = FULL", acquire_, name);
    transact("PRAGMA synchronous = NORMAL", release_, name);
  }

 private:
  void check(int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE)
      throw std::runtime_error(sqlite3_errmsg(database_));
  }
  void script(const char* sql) { check(sqlite3_exec(database_, sql, nullptr, nullptr, nullptr)); }
  sqlite3_stmt* prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v3(database_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
    return statement;
  }
  void step(sqlite3_stmt* statement) {
    check(sqlite3_step(statement));
    sqlite3_reset(statement);
  }
  void transact(const char* durability, sqlite3_stmt* update, const std::string& name) {
    script(durability);
    step(begin_);
    sqlite3_bind_text(update, 1, name.c_str(), static_cast<int>(name.size()), SQLITE_STATIC);
    if (update == acquire_) sqlite3_bind_int64(update, 2, next_);
    step(update);
    if (sqlite3_changes(database_) != 1) throw std::runtime_error("not granted");
    step(commit_);
  }

  const int names_;
  std::int64_t next_ = 0;
  sqlite3* database_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
  sqlite3_stmt* acquire_ = nullptr;
  sqlite3_stmt* release_ = nullptr;
};

}  // namespace

Step sqlite_floor(const std::string& path, int names) {
  return [floor = std::make_shared<Floor>(path, names)] { floor->pair(); };
}

}  // namespace baton::bench
