// Renewals have a connection of their own: a pool that is stuck must not cost anybody a lease.

#include <gtest/gtest.h>

#include <thread>

#include "postgres_database.h"
#include "support/wait.h"

namespace baton::test {
namespace {

TEST(PostgresRenewal, renewals_go_on_while_every_other_connection_is_stuck) {
  Database database;
  database.migrate();
  const auto store = database.store();
  ask(*store, acquire(1, "DEFAULT:kept"));
  ask(*store, acquire(2, "DEFAULT:stuck:1"));
  ask(*store, acquire(3, "DEFAULT:stuck:2"));

  Session blocker(database.url());
  blocker.sql("BEGIN");
  blocker.sql("SELECT 1 FROM baton.lock WHERE key LIKE 'DEFAULT:stuck:%' FOR UPDATE");
  std::vector<std::jthread> callers;
  for (std::uint64_t number = 2; number <= 3; ++number) {
    callers.emplace_back([&store, number] {
      Request release;
      release.verb = Verb::release;
      release.grant = grant(number);
      release.asks = {{"DEFAULT:stuck:" + std::to_string(number - 1), Mode::X}};
      (void)store->apply({&release, 1}, soon());
    });
  }
  Session observer(database.url());
  ASSERT_TRUE(poll_until([&] {
    return observer.sql(
               "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
               "AND datname = current_database()") == "2";
  }));
  Request renew;
  renew.verb = Verb::renew;
  renew.grant = grant(1);
  renew.asks = {{"DEFAULT:kept", Mode::X}};
  EXPECT_EQ(ask(*store, renew).outcome, Outcome::granted);
  EXPECT_EQ(observer.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                         "AND datname = current_database()"),
            "2")
      << "the others were not stuck any more, so this showed nothing";
  blocker.sql("ROLLBACK");
}

}  // namespace
}  // namespace baton::test
