#pragma once

// Fleets of `baton elect`, on a store of the test's own, and the table that their leaders write.

#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <sqlite3.h>

#include "baton/fence.h"
#include "integration/cli/cli_support.h"

namespace baton::test {

// The first child of a process; 0 if it has none.
inline pid_t child_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) +
                     "/children");
  pid_t child = 0;
  file >> child;
  return child;
}

// A database that its writers guard with the fence.
class WorkTable {
 public:
  explicit WorkTable(const std::filesystem::path& path) {
    if (sqlite3_open(path.c_str(), &database_) != SQLITE_OK) throw std::runtime_error("open");
    sqlite3_busy_timeout(database_, 60'000);
    install_fence(database_).value();
    ask("PRAGMA journal_mode=WAL");
    ask("CREATE TABLE work (id INTEGER PRIMARY KEY AUTOINCREMENT, term INTEGER, node TEXT)");
    ask("CREATE TABLE together (term INTEGER)");
  }
  ~WorkTable() { sqlite3_close(database_); }
  WorkTable(const WorkTable&) = delete;
  WorkTable& operator=(const WorkTable&) = delete;

  // The number in the first column of the first row; 0 if there is none.
  std::int64_t ask(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sqlite3_errmsg(database_));
    }
    const std::int64_t value =
        sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    sqlite3_finalize(statement);
    return value;
  }

  std::int64_t rows() { return ask("SELECT count(*) FROM work"); }
  std::int64_t last_term() { return ask("SELECT coalesce(max(term), 0) FROM work"); }
  // Rows written in a term after a row of a later one.
  std::int64_t late_rows() {
    return ask(
        "SELECT count(*) FROM (SELECT term, max(term) OVER (ORDER BY id) AS newest FROM work) "
        "WHERE term < newest");
  }
  std::int64_t together() { return ask("SELECT count(*) FROM together"); }
  std::int64_t leaders_of_one_term() {
    return ask(
        "SELECT coalesce(max(n), 0) FROM "
        "(SELECT count(DISTINCT node) AS n FROM work GROUP BY term)");
  }

 private:
  sqlite3* database_ = nullptr;
};

// Whether somebody can write there. Not if a process was stopped in the middle of a transaction.
inline bool writable(const std::filesystem::path& path) {
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK) throw std::runtime_error("open");
  sqlite3_busy_timeout(database, 2'000);
  const auto sql = [&](const char* text) {
    return sqlite3_exec(database, text, nullptr, nullptr, nullptr) == SQLITE_OK;
  };
  const bool written = sql("BEGIN IMMEDIATE") && sql("ROLLBACK");
  sqlite3_close(database);
  return written;
}

class ElectTest : public CliTest {
 protected:
  // Says who leads as it starts, and ends when it is told to.
  static constexpr const char* kSay =
      "trap 'exit 0' TERM; echo leads $BATON_TERM; while :; do sleep 0.02; done";

  std::unique_ptr<Process> stand(const std::string& node, const std::string& script = kSay,
                                 Words extra = {}, const std::string& election = "outbox") const {
    Words words{"elect", election, "--node", node};
    words.insert(words.end(), extra.begin(), extra.end());
    for (const auto* word : {"--", "sh", "-c"}) words.emplace_back(word);
    words.push_back(script);
    return start(std::move(words));
  }
  std::unique_ptr<Process> writer(const std::string& node, const std::string& ttl) const {
    return start({"elect", "outbox", "--node", node, "--ttl", ttl, "--", FENCED_WRITER,
                  (dir_ / "work.db").string(), (dir_ / "alive").string(), node});
  }

  // Stops a process that writes into a SQLite file, but never inside a transaction: it would hold
  // up everybody, which is a limit of SQLite and not what these tests are about.
  static void pause(pid_t pid, const std::filesystem::path& path) {
    while (true) {
      ASSERT_TRUE(stop_still(pid));
      if (writable(path)) return;
      ASSERT_EQ(::kill(pid, SIGCONT), 0);
    }
  }

  static bool leads(Process& process) { return process.wait_for_out("leads "); }

  std::string shown(const std::string& election = "outbox") const {
    return baton({"leader", "show", election, "--json"}).out;
  }
  bool waiting(std::size_t candidates) const {
    return poll_until([&] {
      return shown().find("\"candidates\":" + std::to_string(candidates)) != std::string::npos;
    });
  }
  bool led_by(const std::string& node) const {
    return poll_until(
        [&] { return shown().find("\"node\":\"" + node + "\"") != std::string::npos; });
  }

  // How often it stands there.
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
};

}  // namespace baton::test
