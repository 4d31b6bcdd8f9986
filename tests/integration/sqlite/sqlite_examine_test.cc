// Each finding of `baton store doctor` on a file that has it.

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <thread>

#include "integration/sqlite/sqlite_support.h"
#include "store/sqlite/examine.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;
using store::sqlite::Checkup;

class SqliteExamine : public ::testing::Test {
 protected:
  TempDir dir{"examine"};
  std::string path = (dir / "locks.db").string();

  void make() const {
    open_sqlite_admin("sqlite:" + path, BootClock::now() + 30s)
        .value()
        ->migrate(BootClock::now() + 30s)
        .value();
  }
  [[nodiscard]] std::vector<Finding> examine(Checkup checkup = {}) const {
    checkup.filesystem = checkup.filesystem.value_or(0xEF53);  // ext4, wherever this runs
    return store::sqlite::examine(path, checkup, BootClock::now() + 30s).value();
  }
  static void expect(const std::vector<Finding>& findings, const std::string& code,
                     Severity severity) {
    const auto found = std::find_if(findings.begin(), findings.end(),
                                    [&](const Finding& f) { return f.code == code; });
    ASSERT_NE(found, findings.end()) << code;
    EXPECT_EQ(found->severity, severity);
    EXPECT_FALSE(found->what.empty() || found->consequence.empty() || found->remedy.empty());
  }
  void execute(const std::string& sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
};

TEST_F(SqliteExamine, a_good_file_has_no_findings) {
  EXPECT_TRUE(examine({.ttl = 1h}).empty()) << "not there yet";
  make();
  for (const Finding& finding : examine({.ttl = 1h})) ADD_FAILURE() << finding.what;
}

TEST_F(SqliteExamine, a_file_in_memory_is_found) {
  const TempDir memory = TempDir::in_memory("examine");
  path = memory / "locks.db";
  make();
  const auto findings = store::sqlite::examine(path, {.ttl = 1h}, BootClock::now() + 30s).value();
  expect(findings, "memory-filesystem", Severity::warning);
}

TEST_F(SqliteExamine, other_filesystems_are_found) {
  make();
  expect(examine({.filesystem = 0x6969}), "network-filesystem", Severity::danger);
  expect(examine({.filesystem = 0x794C7630}), "container-filesystem", Severity::advice);
}

TEST_F(SqliteExamine, a_disk_that_is_nearly_full_is_found) {
  expect(examine({.least_free = ~std::uint64_t{0}}), "little-space", Severity::warning);
}

TEST_F(SqliteExamine, a_file_that_others_may_write_is_found) {
  make();
  std::filesystem::permissions(path, std::filesystem::perms::all);
  expect(examine(), "writable-by-others", Severity::advice);
}

TEST_F(SqliteExamine, another_journal_mode_is_found) {
  make();
  execute("PRAGMA journal_mode = DELETE");
  expect(examine(), "journal-mode", Severity::warning);
}

TEST_F(SqliteExamine, a_newer_schema_is_found) {
  make();
  execute("UPDATE baton_meta SET schema_version = 99");
  expect(examine(), "schema", Severity::danger);
}

TEST_F(SqliteExamine, a_damaged_file_is_found) {
  make();
  execute(
      "CREATE TABLE filler (a); INSERT INTO filler SELECT hex(randomblob(2000)) FROM "
      "(SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4);"
      "PRAGMA wal_checkpoint(TRUNCATE)");
  const auto size = std::filesystem::file_size(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(size - 8192));
  file << std::string(8192, '\x5a');
  file.close();
  expect(examine(), "damaged", Severity::danger);
}

// As slow as a disk that others keep busy.
TEST_F(SqliteExamine, writes_that_are_slow_for_the_ttl_are_found) {
  make();
  const std::jthread busy([&](const std::stop_token& stop) {
    sqlite3* other = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
    while (!stop.stop_requested()) {
      sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
      std::this_thread::sleep_for(120ms);
      sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
      std::this_thread::sleep_for(20ms);
    }
    sqlite3_close(other);
  });
  const auto severity = [&](Millis ttl) -> std::optional<Severity> {
    for (const Finding& finding : examine({.ttl = ttl})) {
      if (finding.code == "slow") return finding.severity;
    }
    return std::nullopt;
  };
  EXPECT_TRUE(poll_until([&] { return severity(200ms) == Severity::danger; }));
  EXPECT_TRUE(poll_until([&] { return severity(900ms) == Severity::warning; }));
  EXPECT_EQ(severity(1h), std::nullopt);
}

TEST_F(SqliteExamine, a_program_that_keeps_the_write_lock_is_found) {
  make();
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  expect(examine({.ttl = 500ms}), "slow", Severity::danger);
  sqlite3_close(other);
}

}  // namespace
}  // namespace baton::test
