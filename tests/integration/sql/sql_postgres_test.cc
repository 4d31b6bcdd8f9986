// Sessions whose server or network fails, and what only PostgreSQL has.

#include <gtest/gtest.h>

#include "sql/connection.h"
#include "sql/transaction.h"
#include "support/fault_proxy.h"
#include "support/postgres_database.h"
#include "support/wait.h"

namespace baton::sql {
namespace {

using namespace std::chrono_literals;

int port_of(const std::string& url) {
  const auto at = url.find('@');
  return std::stoi(url.substr(url.find(':', at == std::string::npos ? 11 : at) + 1));
}

class SqlPostgres : public ::testing::Test {
 protected:
  SqlPostgres() { session_.sql("CREATE TABLE item (id bigint PRIMARY KEY, name text)"); }

  // The way through the proxy.
  [[nodiscard]] std::string proxied() const {
    std::string url = database_.url();
    const std::string port = ":" + std::to_string(port_of(url));
    url.replace(url.rfind(port), port.size(), ":" + std::to_string(proxy_.port()));
    return url;
  }
  [[nodiscard]] static std::unique_ptr<Connection> open(const std::string& url,
                                                        const Options& options = {}) {
    return Connection::open(url, options).value();
  }
  [[nodiscard]] std::string items() { return session_.sql("SELECT count(*) FROM item"); }
  static Deadline in(Millis time) { return BootClock::now() + time; }

  test::Database database_;
  test::Session session_{database_.url()};
  test::FaultProxy proxy_{port_of(database_.url())};
};

constexpr const char* kInsert = "INSERT INTO item VALUES (1, 'x')";

TEST_F(SqlPostgres, a_commit_whose_answer_is_lost_is_in_doubt) {
  const auto connection = open(proxied());
  auto transaction = Transaction::begin(*connection).value();
  ASSERT_TRUE(transaction.query(kInsert));
  proxy_.swallow_answer_to("COMMIT");
  const auto done = transaction.commit();
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().in_doubt);
  EXPECT_TRUE(done.error().retryable);
  EXPECT_EQ(done.error().code, Code::unavailable) << done.error().message;
  EXPECT_FALSE(connection->usable());
  EXPECT_TRUE(test::poll_until([&] { return items() == "1"; })) << "here it did commit";
}

TEST_F(SqlPostgres, a_commit_that_is_not_answered_in_time_is_in_doubt) {
  const auto connection = open(proxied());
  auto transaction = Transaction::begin(*connection).value();
  ASSERT_TRUE(transaction.query(kInsert));
  proxy_.hold("COMMIT");
  const auto done = transaction.commit(in(100ms));
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().in_doubt);
  EXPECT_FALSE(connection->usable());
  EXPECT_EQ(items(), "0") << "here it did not commit";
}

TEST_F(SqlPostgres, a_statement_whose_answer_is_lost_is_in_doubt_only_outside_a_transaction) {
  const auto outside = open(proxied());
  proxy_.swallow_answer_to("INSERT");
  auto lost = outside->query(kInsert);
  ASSERT_FALSE(lost);
  EXPECT_TRUE(lost.error().in_doubt);
  EXPECT_TRUE(test::poll_until([&] { return items() == "1"; }));

  const auto inside = open(proxied());
  auto transaction = Transaction::begin(*inside).value();
  proxy_.swallow_answer_to("INSERT");
  lost = transaction.query("INSERT INTO item VALUES (2, 'x')");
  ASSERT_FALSE(lost);
  EXPECT_FALSE(lost.error().in_doubt);
  EXPECT_TRUE(lost.error().retryable);
  const auto done = transaction.commit();
  ASSERT_FALSE(done);
  EXPECT_FALSE(done.error().in_doubt);
  EXPECT_EQ(items(), "1");
}

TEST_F(SqlPostgres, a_server_that_hangs_costs_no_more_than_the_deadline) {
  const auto connection = open(proxied());
  proxy_.silence();
  const Instant began = BootClock::now();
  const auto late = connection->query("SELECT 1", {}, in(200ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::unavailable);
  EXPECT_LT(BootClock::now() - began, test::patience);
  EXPECT_FALSE(connection->usable());
  const auto after = connection->query("SELECT 1");
  ASSERT_FALSE(after) << "never reopened behind the caller's back";
  EXPECT_FALSE(after.error().in_doubt) << "it was not sent";
  proxy_.cut();
  EXPECT_EQ(Connection::open(proxied(), {}, in(200ms)).error().code, Code::unavailable);
}

TEST_F(SqlPostgres, a_session_that_stands_still_in_a_transaction_loses_its_locks) {
  const auto connection = open(database_.url(), {.idle_in_transaction_timeout = 200ms});
  auto transaction = Transaction::begin(*connection).value();
  ASSERT_TRUE(transaction.query(kInsert));
  // Waits for the row of the other transaction, until the server ends that one.
  session_.sql("INSERT INTO item VALUES (1, 'y')");
  const auto done = transaction.commit();
  ASSERT_FALSE(done);
  EXPECT_FALSE(done.error().in_doubt) << "it was idle, so it did not commit";
  EXPECT_TRUE(done.error().retryable);
  EXPECT_FALSE(connection->usable());
  EXPECT_EQ(session_.sql("SELECT name FROM item"), "y");
}

TEST_F(SqlPostgres, a_session_that_stands_still_outside_a_transaction_loses_its_locks) {
  const auto connection = open(database_.url(), {.idle_session_timeout = 200ms});
  ASSERT_TRUE(connection->query("SELECT pg_advisory_lock(1)"));
  session_.sql("SELECT pg_advisory_lock(1)");
  EXPECT_TRUE(test::poll_until([&] { return !connection->still_there(); }));
}

TEST_F(SqlPostgres, the_commit_of_a_transaction_that_failed_behind_our_back_is_a_failure) {
  const auto connection = open(database_.url());
  auto transaction = Transaction::begin(*connection).value();
  ASSERT_TRUE(transaction.query(kInsert));
  PQclear(PQexec(connection->postgres(), "SELECT 1 / 0"));  // by a user's own code
  const auto done = transaction.commit();
  ASSERT_FALSE(done);
  EXPECT_FALSE(done.error().in_doubt);
  EXPECT_NE(done.error().message.find("rolled back"), std::string::npos) << done.error().message;
  EXPECT_EQ(items(), "0");
  EXPECT_TRUE(connection->idle());
}

TEST_F(SqlPostgres, a_constraint_that_is_checked_by_the_commit_is_a_failure_without_doubt) {
  session_.sql("ALTER TABLE item ADD UNIQUE (name) DEFERRABLE INITIALLY DEFERRED");
  session_.sql("INSERT INTO item VALUES (9, 'x')");
  const auto connection = open(database_.url());
  auto transaction = Transaction::begin(*connection).value();
  ASSERT_TRUE(transaction.query(kInsert));
  const auto done = transaction.commit();
  ASSERT_FALSE(done);
  EXPECT_FALSE(done.error().in_doubt);
  EXPECT_EQ(done.error().code, Code::bad_request) << done.error().message;
  EXPECT_EQ(connection->sqlstate(), "23505");
  EXPECT_TRUE(connection->usable());
}

TEST_F(SqlPostgres, conflicts_with_other_transactions_are_retryable) {
  session_.sql("INSERT INTO item VALUES (1, 'a')");
  const auto connection = open(database_.url());
  auto transaction = Transaction::begin(*connection).value();
  ASSERT_TRUE(transaction.script("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"));
  ASSERT_TRUE(transaction.query("SELECT * FROM item"));
  session_.sql("UPDATE item SET name = 'b'");
  const auto conflict = transaction.query("UPDATE item SET name = 'c'");
  ASSERT_FALSE(conflict);
  EXPECT_EQ(connection->sqlstate(), "40001");
  EXPECT_TRUE(conflict.error().retryable);
  const auto done = transaction.commit();
  ASSERT_FALSE(done);
  EXPECT_TRUE(done.error().retryable) << "as the failure that caused it";
  EXPECT_FALSE(done.error().in_doubt);
}

TEST_F(SqlPostgres, a_statement_whose_caller_has_left_does_not_keep_its_locks) {
  session_.sql(kInsert);
  auto connection = open(database_.url(), {.statement_timeout = 600s});
  const std::string slow = "UPDATE item SET name = 'slow' WHERE pg_sleep(600) IS NOT NULL";
  ASSERT_FALSE(connection->query(slow, {}, in(100ms)));
  connection.reset();
  session_.sql("SET lock_timeout = '30s'");
  EXPECT_NO_THROW(session_.sql("ALTER TABLE item ADD COLUMN more text"));
}

TEST_F(SqlPostgres, arrays_are_bound_where_sql_says_their_type) {
  const auto connection = open(database_.url());
  const std::vector<std::string> words{"", "NULL", "a,b", "{\"x\"}", "back\\slash", "ü"};
  const auto rows = connection->query("SELECT w FROM unnest($1::text[]) w", {words}).value();
  ASSERT_EQ(rows.size(), words.size());
  for (std::size_t i = 0; i < words.size(); ++i) EXPECT_EQ(rows[i].text(0), words[i]);
  const std::vector<std::int64_t> numbers{1, -2, 1LL << 62};
  const auto sum = connection->query("SELECT sum(n) FROM unnest($1::bigint[]) n", {numbers});
  EXPECT_EQ(sum.value().front().integer(0), (1LL << 62) - 1);
  session_.sql("INSERT INTO item SELECT n, n FROM generate_series(1, 9) n");
  const auto some = connection->query("SELECT * FROM item WHERE id = ANY($1)", {numbers});
  EXPECT_EQ(some.value().size(), 1U);
  EXPECT_TRUE(
      connection->query("SELECT * FROM item WHERE name = ANY($1)", {std::vector<std::string>{}})
          .value()
          .empty());
}

TEST_F(SqlPostgres, notifications_wake_a_waiting_session) {
  const auto connection = open(database_.url());
  ASSERT_TRUE(connection->listen("Odd \"name\""));
  EXPECT_TRUE(connection->wait_for_notifications(in(0ms)).value().empty());
  EXPECT_TRUE(connection->wait_for_notifications(in(20ms)).value().empty());
  std::jthread notifier([&] { session_.sql("SELECT pg_notify('Odd \"name\"', 'payload')"); });
  const auto heard = connection->wait_for_notifications(in(30s)).value();
  ASSERT_EQ(heard.size(), 1U);
  EXPECT_EQ(heard[0].channel, "Odd \"name\"");
  EXPECT_EQ(heard[0].payload, "payload");
  notifier.join();
  // One that arrives together with the answer to a statement is not lost.
  session_.sql("SELECT pg_notify('Odd \"name\"', 'second')");
  ASSERT_TRUE(connection->query("SELECT 1"));
  EXPECT_EQ(connection->wait_for_notifications(in(30s)).value().size(), 1U);
}

TEST_F(SqlPostgres, a_session_that_waits_for_notifications_is_not_idle) {
  const auto connection = open(database_.url(), {.idle_session_timeout = 300ms});
  ASSERT_TRUE(connection->listen("channel"));
  // Longer than the timeout, in one call and in many.
  EXPECT_TRUE(connection->wait_for_notifications(in(1s)).value().empty());
  for (const Deadline end = in(1s); BootClock::now() < end;) {
    ASSERT_TRUE(connection->wait_for_notifications(in(10ms)));
  }
  EXPECT_EQ(connection->query("SELECT 1").value().front().integer(0), 1);
  EXPECT_TRUE(connection->idle());
}

TEST_F(SqlPostgres, a_session_that_is_ended_says_so_to_a_waiting_caller) {
  const auto connection = open(database_.url());
  ASSERT_TRUE(connection->listen("channel"));
  const auto pid = connection->query("SELECT pg_backend_pid()").value().front().text(0);
  session_.sql("SELECT pg_terminate_backend(" + pid + ")");
  const auto ended = connection->wait_for_notifications(in(30s));
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().code, Code::unavailable);
  EXPECT_FALSE(connection->usable());
}

TEST_F(SqlPostgres, no_message_holds_the_password) {
  std::string url = database_.url();
  url.replace(url.find("://"), url.find('@') - url.find("://"), "://nobody:hunter2");
  const auto refused = Connection::open(url, {}, in(30s));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unauthorized) << refused.error().message;
  EXPECT_EQ(refused.error().message.find("hunter2"), std::string::npos) << refused.error().message;
  EXPECT_NE(refused.error().message.find("nobody"), std::string::npos) << refused.error().message;
}

TEST_F(SqlPostgres, a_statement_prepared_before_its_table_changed_needs_a_new_session) {
  const Statement all("SELECT * FROM item");
  auto connection = open(database_.url());
  ASSERT_TRUE(connection->query(all));
  session_.sql("ALTER TABLE item ADD COLUMN more text");
  const auto stale = connection->query(all);
  ASSERT_FALSE(stale);
  EXPECT_TRUE(stale.error().retryable);
  EXPECT_FALSE(connection->usable());
  connection = open(database_.url());
  EXPECT_TRUE(connection->query(all));
}

}  // namespace
}  // namespace baton::sql
