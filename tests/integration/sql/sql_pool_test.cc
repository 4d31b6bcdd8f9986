#include <gtest/gtest.h>

#include "sql/pool.h"
#include "sql/transaction.h"
#include "support/postgres_database.h"

namespace baton::sql {
namespace {

using namespace std::chrono_literals;

class SqlPool : public ::testing::Test {
 protected:
  static Deadline in(Millis time) { return BootClock::now() + time; }
  static std::string pid(Connection& connection) {
    return connection.query("SELECT pg_backend_pid()").value().front().text(0);
  }
  test::Database database_;
};

TEST_F(SqlPool, there_are_never_more_sessions_than_its_bound) {
  Pool pool(database_.url(), {.name = "the data"}, 2);
  auto first = pool.take();
  auto second = std::make_unique<Pool::Borrowed>(pool.take().value());
  const auto third = pool.take(in(50ms));
  ASSERT_FALSE(third);
  EXPECT_EQ(third.error().code, Code::unavailable);
  EXPECT_TRUE(third.error().retryable);
  EXPECT_EQ(third.error().message, "the data: all 2 connections are in use");
  std::jthread waiting([&] { EXPECT_TRUE(pool.take(in(30s))); });
  second.reset();
  waiting.join();
}

TEST_F(SqlPool, a_session_is_used_again) {
  Pool pool(database_.url(), {});
  const std::string used = pid(*pool.take().value());
  EXPECT_EQ(pid(*pool.take().value()), used);
}

TEST_F(SqlPool, a_session_that_the_server_has_ended_is_replaced) {
  Pool pool(database_.url(), {}, 1);
  const std::string used = pid(*pool.take().value());
  test::Session session(database_.url());
  session.sql("SELECT pg_terminate_backend(" + used + ", 30000)");
  const auto lease = pool.take();
  ASSERT_TRUE(lease);
  EXPECT_NE(pid(**lease), used);
}

TEST_F(SqlPool, a_session_left_in_a_transaction_does_not_come_back) {
  Pool pool(database_.url(), {}, 1);
  std::string used;
  {
    const auto lease = pool.take();
    used = pid(**lease);
    ASSERT_TRUE((*lease)->script("BEGIN"));
  }
  EXPECT_NE(pid(*pool.take().value()), used);
}

TEST_F(SqlPool, a_database_that_is_not_there_takes_up_no_place) {
  Pool pool("postgres://nobody@127.0.0.1:1/none", {}, 1);
  EXPECT_FALSE(pool.take());
  EXPECT_EQ(pool.take(in(30s)).error().message.find("in use"), std::string::npos);
}

}  // namespace
}  // namespace baton::sql
