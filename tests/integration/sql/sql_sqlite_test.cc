// What only SQLite has: a file, its mode, and writers that take turns.

#include <atomic>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "sql/connection.h"
#include "sql/transaction.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::sql {
namespace {

using namespace std::chrono_literals;

class SqlSqlite : public ::testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return (dir_ / "data.db").string(); }
  [[nodiscard]] std::unique_ptr<Connection> open(const Options& options = {}) const {
    return Connection::open("sqlite:" + path(), options).value();
  }
  test::TempDir dir_{"sql"};
};

TEST_F(SqlSqlite, a_new_file_is_for_its_user_alone_and_has_a_write_ahead_log) {
  const mode_t old = ::umask(0);
  const auto connection = open();
  ::umask(old);
  ASSERT_TRUE(connection->script("CREATE TABLE item (id INTEGER)"));
  EXPECT_EQ(connection->query("PRAGMA journal_mode").value().front().text(0), "wal");
  for (const std::string& file : {path(), path() + "-wal", path() + "-shm"}) {
    struct stat found {};
    ASSERT_EQ(::stat(file.c_str(), &found), 0) << file;
    EXPECT_EQ(found.st_mode & 0777U, 0600U) << file;
  }
}

TEST_F(SqlSqlite, a_missing_file_is_not_made_where_it_must_be_there) {
  for (const Options& options : {Options{.read_only = true}, Options{.create = false}}) {
    const auto opened = Connection::open("sqlite:" + path(), options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, Code::bad_store);
    EXPECT_NE(opened.error().message.find(path()), std::string::npos);
    EXPECT_FALSE(std::filesystem::exists(path()));
  }
}

TEST_F(SqlSqlite, the_journal_of_a_file_of_others_is_left_alone) {
  {
    sqlite3* others = nullptr;
    ASSERT_EQ(sqlite3_open(path().c_str(), &others), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(others, "CREATE TABLE item (id INTEGER)", nullptr, nullptr, nullptr),
              SQLITE_OK);
    sqlite3_close(others);
  }
  const auto connection = open({.create = false});
  EXPECT_EQ(connection->query("PRAGMA journal_mode").value().front().text(0), "delete");
  EXPECT_TRUE(connection->query("INSERT INTO item VALUES (1)"));
}

TEST_F(SqlSqlite, what_is_no_database_is_refused_at_once) {
  std::ofstream(path()) << std::string(5000, 'x');
  const auto opened = Connection::open("sqlite:" + path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Code::bad_store) << opened.error().message;
  EXPECT_FALSE(opened.error().retryable);
}

TEST_F(SqlSqlite, a_busy_file_is_waited_for_until_the_deadline) {
  const auto first = open();
  const auto second = open();
  auto transaction = Transaction::begin(*first).value();
  const Instant began = BootClock::now();
  const auto busy = Transaction::begin(*second, began + 100ms);
  ASSERT_FALSE(busy);
  EXPECT_GE(BootClock::now() - began, 100ms);
  EXPECT_EQ(busy.error().code, Code::unavailable);
  EXPECT_TRUE(busy.error().retryable);
  EXPECT_FALSE(busy.error().in_doubt);
  ASSERT_TRUE(transaction.commit());
  EXPECT_TRUE(Transaction::begin(*second));
}

TEST_F(SqlSqlite, other_uses_of_the_handle_wait_for_a_busy_file_too) {
  const auto first = open();
  const auto second = open({.statement_timeout = 30s});
  ASSERT_TRUE(second->query("SELECT 1", {}, BootClock::now() + 1s));
  std::optional<Transaction> transaction(Transaction::begin(*first).value());
  std::jthread waiting([&] {
    EXPECT_EQ(
        sqlite3_exec(second->sqlite(), "CREATE TABLE item (id INTEGER)", nullptr, nullptr, nullptr),
        SQLITE_OK);
  });
  transaction.reset();
  waiting.join();
}

TEST_F(SqlSqlite, a_file_that_was_replaced_takes_no_more_changes) {
  const auto add_one = [](Transaction& in) -> Result<void> {
    auto added = in.query("INSERT INTO item VALUES (1)");
    return added ? Result<void>() : added.error();
  };
  const auto expect_moved = [&](Connection& connection, const Error& error) {
    EXPECT_NE(error.message.find(path() + " was deleted or replaced while in use"),
              std::string::npos)
        << error.message;
    EXPECT_EQ(error.code, Code::unavailable);
    EXPECT_TRUE(error.retryable);
    EXPECT_FALSE(error.in_doubt);
    EXPECT_FALSE(connection.usable());
    EXPECT_FALSE(connection.still_there());
    EXPECT_NE(sqlite3_get_autocommit(connection.sqlite()), 0) << "rolled back";
    EXPECT_FALSE(connection.transaction(add_one));
  };
  ASSERT_TRUE(open()->script("CREATE TABLE item (id INTEGER)"));
  const auto alone = open();
  const auto prepared = open();
  const auto script = open();
  const auto begins = open();
  const auto commits = open();
  const auto asked = open();
  ASSERT_TRUE(asked->still_there());
  auto transaction = Transaction::begin(*commits).value();
  ASSERT_TRUE(add_one(transaction));
  for (const char* of : {"", "-wal", "-shm"}) {
    std::filesystem::rename(path() + of, (dir_ / "old.db").string() + of);
  }
  ASSERT_TRUE(open()->script("CREATE TABLE item (id INTEGER)"));

  const Statement insert("INSERT INTO item VALUES (1)");
  expect_moved(*commits, transaction.commit().error());
  expect_moved(*begins, begins->transaction(add_one).error());
  expect_moved(*alone, alone->query(insert.sql()).error());
  expect_moved(*prepared, prepared->query(insert).error());
  expect_moved(*script, script->script(insert.sql()).error());
  EXPECT_FALSE(asked->still_there());
  const auto count = [](Connection& in) {
    return in.query("SELECT count(*) FROM item").value().front().integer(0);
  };
  EXPECT_EQ(count(*Connection::open("sqlite:" + (dir_ / "old.db").string()).value()), 0);
  const auto again = open();
  ASSERT_TRUE(again->transaction(add_one));
  EXPECT_EQ(count(*again), 1);
}

TEST_F(SqlSqlite, a_file_that_was_deleted_takes_no_more_changes) {
  const auto connection = open();
  ASSERT_TRUE(connection->script("CREATE TABLE item (id INTEGER)"));
  std::filesystem::remove(path());
  const auto gone = connection->query("INSERT INTO item VALUES (1)");
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find("was deleted or replaced while in use"), std::string::npos);
  EXPECT_FALSE(connection->usable());
}

TEST_F(SqlSqlite, no_writer_is_left_behind_by_the_others) {
  constexpr int kWriters = 4;
  constexpr int kEach = 50;
  ASSERT_TRUE(open()->script("CREATE TABLE item (writer INTEGER)"));
  {
    std::vector<std::jthread> writers;
    for (std::int64_t i = 0; i < kWriters; ++i) {
      writers.emplace_back([this, i] {
        const auto connection = open();
        for (int n = 0; n < kEach; ++n) {
          const auto done = connection->transaction(
              [&](Transaction& transaction) -> Result<void> {
                auto added = transaction.query("INSERT INTO item VALUES ($1)", {i});
                return added ? Result<void>() : added.error();
              },
              BootClock::now() + test::patience);
          ASSERT_TRUE(done) << done.error().message;
        }
      });
    }
  }
  EXPECT_EQ(open()->query("SELECT count(*) FROM item").value().front().integer(0),
            kWriters * kEach);
}

TEST_F(SqlSqlite, many_may_make_the_file_at_once) {
  std::atomic<int> failed = 0;
  {
    std::vector<std::jthread> openers;
    for (int i = 0; i < 8; ++i) {
      openers.emplace_back([&] {
        const auto opened = Connection::open("sqlite:" + path(), {}, BootClock::now() + 30s);
        if (!opened) ++failed;
      });
    }
  }
  EXPECT_EQ(failed, 0);
}

TEST_F(SqlSqlite, what_is_not_bound_or_not_there_is_said) {
  const auto connection = open();
  for (const auto& [sql, values] : std::vector<std::pair<std::string, Values>>{
           {"SELECT $1", {}},
           {"SELECT $1", {std::int64_t{1}, std::int64_t{2}}},
           {"SELECT $1", {std::vector<std::string>{"a"}}},
           {"SELECT 1; SELECT 2", {}},
       }) {
    const auto refused = connection->query(sql, values);
    ASSERT_FALSE(refused) << sql;
    EXPECT_EQ(refused.error().code, Code::bad_request) << refused.error().message;
  }
  EXPECT_EQ(connection->listen("channel").error().code, Code::unsupported);
}

}  // namespace
}  // namespace baton::sql
