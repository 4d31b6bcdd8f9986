// The fence: safety where the lease is only best effort.

#include <atomic>
#include <thread>

#include "baton/fence.h"
#include "integration/sqlite/sqlite_support.h"

namespace baton::test {
namespace {

class SqliteFenceTest : public SqliteTest {
 protected:
  SqliteFenceTest() {
    data_.run("PRAGMA journal_mode = WAL; CREATE TABLE ledger(entry)");
    install_fence(data_.get()).value();
  }

  // One fenced write, as a user would make it.
  Code write(Outsider& database, Mode mode, Token token, const std::string& entry = "x") {
    database.run("BEGIN IMMEDIATE");
    const auto passed = fence(database.get(), kKey, mode, token);
    if (passed) database.run("INSERT INTO ledger VALUES ('" + entry + "')");
    database.run(passed ? "COMMIT" : "ROLLBACK");
    return passed ? Code::busy : passed.error().code;  // busy stands for: written
  }
  static constexpr Code kWritten = Code::busy;

  const std::string data_path_ = directory_ / "data.db";
  Outsider data_{data_path_};
};

TEST_F(SqliteFenceTest, a_paused_holder_cannot_write) {
  EXPECT_EQ(write(data_, Mode::X, 1), kWritten);
  EXPECT_EQ(write(data_, Mode::X, 2), kWritten);
  EXPECT_EQ(write(data_, Mode::X, 1), Code::fenced);
  EXPECT_EQ(write(data_, Mode::X, 2), kWritten) << "the newest may write again";
  EXPECT_EQ(data_.run("SELECT count(*) FROM ledger"), "3");
}

TEST_F(SqliteFenceTest, nobody_newer_comes_between_the_check_and_the_commit) {
  Outsider successor(data_path_);
  sqlite3_busy_timeout(successor.get(), 0);
  data_.run("BEGIN IMMEDIATE");
  ASSERT_TRUE(fence(data_.get(), kKey, Mode::X, 1));
  // Paused here. The successor has to wait until this write is committed or given up.
  EXPECT_EQ(successor.run("BEGIN IMMEDIATE"), "database is locked");
  data_.run("INSERT INTO ledger VALUES ('first'); COMMIT");
  EXPECT_EQ(write(successor, Mode::X, 2, "second"), kWritten);
  EXPECT_EQ(write(data_, Mode::X, 1, "late"), Code::fenced);
  EXPECT_EQ(data_.run("SELECT group_concat(entry) FROM ledger"), "first,second");
}

TEST_F(SqliteFenceTest, a_deferred_transaction_that_was_overtaken_is_refused) {
  Outsider successor(data_path_);
  data_.run("BEGIN");
  data_.run("SELECT * FROM ledger");  // its snapshot is older than what comes now
  EXPECT_EQ(write(successor, Mode::X, 2), kWritten);
  const auto late = fence(data_.get(), kKey, Mode::X, 1);
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().retryable) << late.error().message;
  EXPECT_NE(late.error().message.find("repeat"), std::string::npos) << late.error().message;
  data_.run("ROLLBACK");
  EXPECT_EQ(write(data_, Mode::X, 1), Code::fenced);
}

// With a look before it, the fence would keep a snapshot from before the other's commit.
TEST_F(SqliteFenceTest, a_fence_first_in_a_deferred_transaction_waits_for_other_writers) {
  Outsider other(data_path_);
  other.run("BEGIN IMMEDIATE; INSERT INTO ledger VALUES ('before')");
  std::atomic<int> waits{0};
  sqlite3_busy_handler(
      data_.get(),
      [](void* count, int) {
        ++*static_cast<std::atomic<int>*>(count);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return 1;
      },
      &waits);
  data_.run("BEGIN");
  Result<void> passed;
  std::jthread waiting([&] { passed = fence(data_.get(), kKey, Mode::X, 1); });
  EXPECT_TRUE(poll_until([&] { return waits > 0; }));
  other.run("COMMIT");
  waiting.join();
  ASSERT_TRUE(passed) << passed.error().message;
  EXPECT_EQ(data_.run("SELECT group_concat(entry) FROM ledger"), "before");
  data_.run("COMMIT");
}

TEST_F(SqliteFenceTest, a_rollback_to_a_savepoint_undoes_the_fences_that_came_after_it) {
  data_.run("BEGIN IMMEDIATE; SAVEPOINT inner_part");
  ASSERT_TRUE(fence(data_.get(), kKey, Mode::X, 7));
  data_.run("ROLLBACK TO inner_part; COMMIT");
  EXPECT_EQ(write(data_, Mode::X, 6), kWritten);
}

TEST_F(SqliteFenceTest, only_incompatible_modes_overtake) {
  Token token = 0;
  for (const Mode older : kAllModes) {
    for (const Mode newer : kAllModes) {
      data_.run("DELETE FROM baton_fence");
      token += 2;
      ASSERT_EQ(write(data_, newer, token), kWritten);
      EXPECT_EQ(write(data_, older, token - 1), compatible(newer, older) ? kWritten : Code::fenced)
          << short_name(older) << " after " << short_name(newer);
    }
  }
}

TEST_F(SqliteFenceTest, two_shared_holders_do_not_fence_each_other_off) {
  EXPECT_EQ(write(data_, Mode::S, 2), kWritten);
  EXPECT_EQ(write(data_, Mode::S, 1), kWritten);
  EXPECT_EQ(write(data_, Mode::X, 3), kWritten);
  EXPECT_EQ(write(data_, Mode::S, 2), Code::fenced);
}

TEST_F(SqliteFenceTest, a_refused_writer_leaves_no_trace_in_the_fence) {
  EXPECT_EQ(write(data_, Mode::X, 5), kWritten);
  EXPECT_EQ(write(data_, Mode::S, 4), Code::fenced);
  EXPECT_EQ(data_.run("SELECT s_token FROM baton_fence"), "0");
}

TEST_F(SqliteFenceTest, a_fence_outside_a_transaction_is_refused) {
  const auto passed = fence(data_.get(), kKey, Mode::X, 1);
  ASSERT_FALSE(passed);
  EXPECT_EQ(passed.error().code, Code::bad_request);
  EXPECT_NE(passed.error().message.find("BEGIN IMMEDIATE"), std::string::npos);
}

TEST_F(SqliteFenceTest, a_database_without_a_fence_says_so) {
  Outsider bare(directory_ / "bare.db");
  bare.run("BEGIN IMMEDIATE");
  const auto passed = fence(bare.get(), kKey, Mode::X, 1);
  ASSERT_FALSE(passed);
  EXPECT_EQ(passed.error().code, Code::bad_store);
  EXPECT_NE(passed.error().message.find("install_fence"), std::string::npos);
}

TEST_F(SqliteFenceTest, locks_in_the_same_database_refuse_before_the_successor_has_written) {
  auto store = open({.path = data_path_});
  const Request first = acquire(kKey);
  const Token token = ask(*store, first).tokens.at(0);
  EXPECT_EQ(write(data_, Mode::X, token), kWritten);
  advance(Millis(10'000));
  const Request second = acquire(kKey);
  const Token newer = ask(*store, second).tokens.at(0);
  EXPECT_EQ(write(data_, Mode::X, token), Code::fenced) << "granted, though it never wrote";
  EXPECT_EQ(write(data_, Mode::X, newer), kWritten);
  ask(*store, same(Verb::release, second));
  EXPECT_EQ(write(data_, Mode::X, token), Code::fenced);
}

TEST_F(SqliteFenceTest, shared_grants_in_the_same_database_do_not_refuse_each_other) {
  auto store = open({.path = data_path_});
  const Token one = ask(*store, acquire(kKey, Millis{0}, Mode::S)).tokens.at(0);
  const Token two = ask(*store, acquire(kKey, Millis{0}, Mode::S)).tokens.at(0);
  EXPECT_EQ(write(data_, Mode::S, two), kWritten);
  EXPECT_EQ(write(data_, Mode::S, one), kWritten);
}

TEST_F(SqliteFenceTest, every_incompatible_grant_in_the_same_database_refuses) {
  auto store = open({.path = data_path_});
  ask(*store, acquire("DEFAULT:first"));
  for (const Mode older : kAllModes) {
    for (const Mode newer : kAllModes) {
      data_.run("DELETE FROM baton_fence");
      const Request request = acquire(kKey, Millis{0}, newer);
      const Token token = ask(*store, request).tokens.at(0);
      EXPECT_EQ(write(data_, older, token - 1), compatible(newer, older) ? kWritten : Code::fenced)
          << short_name(older) << " after " << short_name(newer);
      ask(*store, same(Verb::release, request));
      ask(*store, acquire("DEFAULT:another" + std::to_string(token)));  // leave a gap
    }
  }
}

TEST_F(SqliteFenceTest, a_damaged_lock_document_refuses) {
  auto store = open({.path = data_path_});
  const Token token = ask(*store, acquire(kKey)).tokens.at(0);
  data_.run("UPDATE baton_lock SET doc = '{'");
  EXPECT_NE(write(data_, Mode::X, token), kWritten);
}

TEST_F(SqliteFenceTest, after_a_restore_the_tokens_are_raised_above_the_fence) {
  auto store = open();
  EXPECT_EQ(write(data_, Mode::X, 700), kWritten);
  EXPECT_EQ(highest_fenced(data_.get()).value(), 700U);
  const Token lagging = ask(*store, acquire("DEFAULT:other")).tokens.at(0);
  EXPECT_EQ(write(data_, Mode::X, lagging), Code::fenced);
  auto admin = open_sqlite_admin("sqlite:" + path_, soon()).value();
  admin->raise_tokens(highest_fenced(data_.get()).value(), soon()).value();
  EXPECT_EQ(write(data_, Mode::X, ask(*store, acquire(kKey)).tokens.at(0)), kWritten);
}

TEST_F(SqliteFenceTest, an_empty_fence_has_seen_nothing) {
  EXPECT_EQ(highest_fenced(data_.get()).value(), 0U);
  install_fence(data_.get()).value();
}

}  // namespace
}  // namespace baton::test
