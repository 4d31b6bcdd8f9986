// What holds on SQLite and PostgreSQL alike.

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "baton/fence.h"
#include "sql/connection.h"
#include "sql/transaction.h"
#include "support/postgres_database.h"
#include "support/temp_dir.h"

namespace baton::sql {
namespace {

using namespace std::chrono_literals;

class SqlConnection : public ::testing::TestWithParam<Kind> {
 protected:
  SqlConnection() {
    if (GetParam() == Kind::postgres) database_ = std::make_unique<test::Database>();
    connection_ = open();
    connection_->script("CREATE TABLE item (id bigint PRIMARY KEY, name text)").value();
  }

  [[nodiscard]] std::string url() const {
    return database_ ? database_->url() : "sqlite:" + (dir_ / "data.db").string();
  }
  [[nodiscard]] std::unique_ptr<Connection> open(const Options& options = {}) const {
    return Connection::open(url(), options, BootClock::now() + 30s).value();
  }
  [[nodiscard]] std::int64_t items() const {
    return open()->query("SELECT count(*) FROM item").value().front().integer(0);
  }
  Result<Rows> add(std::int64_t id) {
    return connection_->query("INSERT INTO item (id) VALUES ($1)", {id});
  }

  test::TempDir dir_{"sql"};
  std::unique_ptr<test::Database> database_;
  std::unique_ptr<Connection> connection_;
};

INSTANTIATE_TEST_SUITE_P(On, SqlConnection, ::testing::Values(Kind::sqlite, Kind::postgres),
                         [](const auto& tested) {
                           return std::string(tested.param == Kind::sqlite ? "sqlite" : "postgres");
                         });

TEST_P(SqlConnection, bound_values_come_back_as_they_were) {
  const bool postgres = GetParam() == Kind::postgres;
  connection_
      ->script(postgres ? "CREATE TABLE kinds (whole bigint, real double precision, word text,"
                          " raw bytea, truth boolean)"
                        : "CREATE TABLE kinds (whole INTEGER, real REAL, word TEXT, raw BLOB,"
                          " truth INTEGER)")
      .value();
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::vector<Values> sent{
      {std::int64_t{0}, 0.1, std::string(), Bytes{}, false},
      {least, 1e300, "Größe \"€\" \\ 'x' 😀\n\t{NULL}", Bytes{all_bytes}, true},
      {std::numeric_limits<std::int64_t>::max(), -5e-324, "$1", Bytes{std::string("\0\0", 2)},
       true},
      {{}, {}, {}, {}, {}},
  };
  const Statement insert("INSERT INTO kinds VALUES ($1, $2, $3, $4, $5)");
  for (const Values& values : sent) {
    EXPECT_EQ(connection_->query(insert, values).value().affected(), 1);
  }
  const auto rows = connection_->query("SELECT * FROM kinds").value();
  ASSERT_EQ(rows.size(), sent.size());
  for (std::size_t i = 0; i < sent.size(); ++i) {
    for (std::size_t column = 0; column < 4; ++column) {
      EXPECT_EQ(rows[i][column], sent[i][column]) << i << " " << column;
    }
    EXPECT_EQ(rows[i].null(4), std::holds_alternative<std::monostate>(sent[i][4]));
    EXPECT_EQ(rows[i].boolean(4), Row(sent[i]).boolean(4));
  }
  // And by their value, in a condition and out of order.
  const auto found = connection_->query("SELECT whole FROM kinds WHERE raw = $2 AND word = $1",
                                        {sent[1][2], sent[1][3]});
  ASSERT_EQ(found.value().size(), 1U);
  EXPECT_EQ(found.value().front().integer(0), least);
}

TEST_P(SqlConnection, text_with_a_nul_byte_is_refused_and_not_cut_short) {
  const auto refused =
      connection_->query("INSERT INTO item VALUES (1, $1)", {std::string("a\0b", 3)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::bad_request);
  EXPECT_EQ(items(), 0);
}

TEST_P(SqlConnection, a_prepared_statement_is_used_again_with_other_values) {
  const Statement insert("INSERT INTO item VALUES ($1, $2) RETURNING name");
  for (std::int64_t id = 0; id < 5; ++id) {
    const auto rows = connection_->query(insert, {id, std::to_string(id)}).value();
    EXPECT_EQ(rows.front().text(0), std::to_string(id));
  }
  const auto twice = connection_->query(insert, {std::int64_t{3}, {}});
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, Code::bad_request) << twice.error().message;
  EXPECT_FALSE(twice.error().in_doubt);
  EXPECT_TRUE(connection_->query(insert, {std::int64_t{7}, {}}).value().front().null(0));
}

TEST_P(SqlConnection, only_written_rows_count_as_affected) {
  for (std::int64_t id = 0; id < 3; ++id) ASSERT_TRUE(add(id));
  EXPECT_EQ(connection_->query("SELECT * FROM item").value().affected(), 0);
  EXPECT_EQ(connection_->query("UPDATE item SET name = 'x' WHERE id > 0").value().affected(), 2);
  EXPECT_EQ(connection_->query("UPDATE item SET name = 'x' WHERE id > 9").value().affected(), 0);
  EXPECT_EQ(connection_->query("CREATE TABLE other (x int)").value().affected(), 0);
}

TEST_P(SqlConnection, a_transaction_is_rolled_back_unless_it_is_committed) {
  {
    auto transaction = Transaction::begin(*connection_).value();
    ASSERT_TRUE(add(1));
    EXPECT_FALSE(Transaction::begin(*connection_)) << "one at a time";
  }
  EXPECT_EQ(items(), 0);
  EXPECT_TRUE(connection_->idle());
  auto transaction = Transaction::begin(*connection_).value();
  ASSERT_TRUE(transaction.query("INSERT INTO item VALUES (1, NULL)"));
  ASSERT_TRUE(transaction.commit());
  EXPECT_EQ(items(), 1);
  EXPECT_FALSE(transaction.commit()) << "it has ended";
}

TEST_P(SqlConnection, an_error_of_the_body_rolls_back) {
  const auto done = connection_->transaction([&](Transaction&) -> Result<void> {
    if (auto added = add(1); !added) return added.error();
    return Error{.code = Code::superseded, .message = "no"};
  });
  EXPECT_EQ(done.error().code, Code::superseded);
  EXPECT_EQ(items(), 0);
}

TEST_P(SqlConnection, the_commit_of_a_failed_transaction_is_a_failure) {
  auto transaction = Transaction::begin(*connection_).value();
  ASSERT_TRUE(add(1));
  ASSERT_FALSE(add(1));  // ignored by the caller
  const auto done = transaction.commit();
  ASSERT_FALSE(done);
  EXPECT_FALSE(done.error().in_doubt);
  EXPECT_NE(done.error().message.find("rolled back"), std::string::npos) << done.error().message;
  EXPECT_EQ(items(), 0);
  EXPECT_TRUE(connection_->idle());
}

TEST_P(SqlConnection, the_commit_of_a_transaction_that_ended_inside_is_a_failure) {
  auto transaction = Transaction::begin(*connection_).value();
  ASSERT_TRUE(add(1));
  ASSERT_TRUE(transaction.script("ROLLBACK"));
  const auto done = transaction.commit();
  ASSERT_FALSE(done);
  EXPECT_FALSE(done.error().in_doubt);
  EXPECT_EQ(items(), 0);
}

TEST_P(SqlConnection, behind_a_transaction_that_ended_inside_nothing_is_written) {
  for (const char* const end : {"COMMIT", "ROLLBACK", "COMMIT; BEGIN", "ROLLBACK; BEGIN"}) {
    connection_ = open({.lent = true});
    auto transaction = Transaction::begin(*connection_).value();
    EXPECT_TRUE(connection_->in_own_transaction());
    transaction.script("SAVEPOINT a; ROLLBACK TO a; RELEASE a").value();
    EXPECT_TRUE(connection_->in_own_transaction());
    transaction.script(end).value();
    EXPECT_FALSE(connection_->in_own_transaction());
    EXPECT_FALSE(add(1)) << end;
    const auto committed = transaction.commit();
    ASSERT_FALSE(committed) << end;
    EXPECT_FALSE(committed.error().in_doubt);
    EXPECT_NE(committed.error().message.find("ended by a statement"), std::string::npos);
    EXPECT_EQ(items(), 0);
    EXPECT_TRUE(connection_->idle());
    connection_->transaction([](Transaction&) { return Result<void>(); }).value();
  }
}

TEST_P(SqlConnection, a_transaction_of_an_overtaken_lease_is_fenced) {
  if (GetParam() == Kind::postgres) {
    ASSERT_TRUE(install_fence(connection_->postgres()));
  } else {
    ASSERT_TRUE(install_fence(connection_->sqlite()));
  }
  const auto write = [&](Token token) {
    const FenceToken held{"DEFAULT:job", Mode::X, token};
    return connection_->transaction([&](Transaction& transaction) -> Result<void> {
      if (auto passed = transaction.fence(std::span(&held, 1)); !passed) return passed;
      if (auto added = add(static_cast<std::int64_t>(token)); !added) return added.error();
      return {};
    });
  };
  EXPECT_TRUE(write(7));
  const auto refused = write(6);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::fenced) << refused.error().message;
  EXPECT_FALSE(refused.error().in_doubt);
  EXPECT_TRUE(write(8));
  EXPECT_EQ(items(), 2);
}

TEST_P(SqlConnection, a_fence_that_is_not_installed_says_so) {
  const FenceToken held{"DEFAULT:job", Mode::X, 1};
  auto transaction = Transaction::begin(*connection_).value();
  const auto refused = transaction.fence(std::span(&held, 1));
  EXPECT_EQ(refused.error().code, Code::bad_store);
  EXPECT_NE(refused.error().message.find("install"), std::string::npos) << refused.error().message;
}

TEST_P(SqlConnection, a_statement_that_runs_too_long_ends_by_its_deadline) {
  const std::string endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";
  const auto hurried = open({.statement_timeout = 200ms});
  const auto stopped = hurried->query(endless);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::unavailable) << stopped.error().message;
  EXPECT_TRUE(stopped.error().retryable);
  EXPECT_TRUE(hurried->usable()) << "the server said so itself";
  const auto late = connection_->query(endless, {}, BootClock::now() + 100ms);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::unavailable) << late.error().message;
}

TEST_P(SqlConnection, what_is_opened_to_be_read_cannot_be_written) {
  const auto reader = open({.read_only = true});
  EXPECT_TRUE(reader->query("SELECT * FROM item"));
  EXPECT_FALSE(reader->query("INSERT INTO item VALUES (1, NULL)"));
  EXPECT_EQ(items(), 0);
}

TEST_P(SqlConnection, a_waiting_writer_goes_on_when_the_lock_is_free) {
  ASSERT_TRUE(add(1));
  auto first = Transaction::begin(*connection_).value();
  ASSERT_TRUE(first.query("UPDATE item SET name = 'first'"));
  // Ended by the database itself: at a deadline of the caller it could still take effect later.
  const auto second = open({.statement_timeout = 100ms});
  const auto busy = second->query("UPDATE item SET name = 'second'", {}, BootClock::now() + 5s);
  ASSERT_FALSE(busy);
  EXPECT_TRUE(busy.error().retryable) << busy.error().message;
  std::jthread waiting([&] {
    const auto third = open();
    EXPECT_TRUE(third->query("UPDATE item SET name = 'third'", {}, BootClock::now() + 30s));
  });
  ASSERT_TRUE(first.commit());
  waiting.join();
  EXPECT_EQ(open()->query("SELECT name FROM item").value().front().text(0), "third");
}

TEST(SqlUrl, a_url_of_another_kind_is_refused_without_repeating_its_password) {
  for (const auto* url : {"mysql://app:hunter2@db/shop", "app:hunter2", "postgres:/app:hunter2@db",
                          "postgres://app:hun/ter2@db/shop", "sqlite:", "sqlite::memory:", "",
                          "postgres://app:hunter2@db/shop?nonsense=1"}) {
    const auto opened = Connection::open(url, {.name = "the data"});
    ASSERT_FALSE(opened) << url;
    EXPECT_EQ(opened.error().code, Code::bad_url) << opened.error().message;
    EXPECT_EQ(opened.error().message.find("ter2"), std::string::npos) << opened.error().message;
  }
}

TEST(SqlRow, values_are_converted_where_databases_differ) {
  const Row row(
      {std::int64_t{42}, std::string("43"), 1.5, true, {}, Bytes{"raw"}, std::string("x")});
  EXPECT_EQ(row.text(0), "42");
  EXPECT_EQ(row.integer(1), 43);
  EXPECT_EQ(row.text(2), "1.5");
  EXPECT_EQ(row.integer(3), 1);
  EXPECT_EQ(row.real(0), 42.0);
  EXPECT_TRUE(row.null(4));
  EXPECT_EQ(row.text(4), "");
  EXPECT_EQ(row.text(5), "raw");
  EXPECT_EQ(row.integer(6), 0);
}

}  // namespace
}  // namespace baton::sql
