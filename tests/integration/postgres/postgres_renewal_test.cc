// Renewals have a connection of their own: a pool that is stuck must not cost anybody a lease.

#include <gtest/gtest.h>

#include <thread>

#include "integration/postgres/postgres_around.h"
#include "integration/postgres/postgres_database.h"
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
      release.targets = {{"DEFAULT:stuck:" + std::to_string(number - 1), Mode::X}};
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
  renew.targets = {{"DEFAULT:kept", Mode::X}};
  EXPECT_EQ(ask(*store, renew).outcome, Outcome::granted);
  EXPECT_EQ(observer.sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                         "AND datname = current_database()"),
            "2")
      << "the others were not stuck any more, so this showed nothing";
  blocker.sql("ROLLBACK");
}

// The connection for renewals has gone, and the server takes no other.
TEST(PostgresRenewal, a_lease_outlives_the_connection_for_renewals) {
  Database database;
  database.migrate();
  const Role role(database);
  Session operator_(database.url());
  operator_.sql("GRANT USAGE ON SCHEMA baton TO " + role.name() +
                ";GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO " +
                role.name() + ";GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA baton TO " +
                role.name());
  const auto store = open_postgres_store(database.url_as(role.name()), soon()).value();
  ask(*store, acquire(1, "DEFAULT:kept"));
  const std::string sessions =
      " FROM pg_stat_activity WHERE datname = current_database() AND usename = '" + role.name() +
      "'";
  const std::string first = operator_.sql("SELECT max(pid)" + sessions);
  const Request renew = request(Verb::renew, 1, "DEFAULT:kept");
  ASSERT_EQ(ask(*store, renew).outcome, Outcome::granted);
  ASSERT_EQ(operator_.sql("SELECT count(*)" + sessions), "2") << "renewals have no connection";

  operator_.sql("ALTER ROLE " + role.name() + " CONNECTION LIMIT 0");
  operator_.sql("SELECT pg_terminate_backend(pid, 10000)" + sessions + " AND pid <> " + first);
  for (int i = 0; i < 5; ++i) {
    auto renewed = ask(*store, renew, soon());
    // A session that has answered within 20 ms is used without a look whether it is still there.
    if (!renewed && i == 0) {
      EXPECT_TRUE(renewed.error().retryable);
      renewed = ask(*store, renew, soon());
    }
    ASSERT_TRUE(renewed) << renewed.error().message;
    EXPECT_EQ(renewed->outcome, Outcome::granted);
  }
  EXPECT_EQ(operator_.sql("SELECT count(*)" + sessions), "1") << "the server took another one";

  operator_.sql("ALTER ROLE " + role.name() + " CONNECTION LIMIT -1");
  EXPECT_TRUE(poll_until([&] {
    ask(*store, renew);
    return operator_.sql("SELECT count(*)" + sessions) == "2";
  })) << "renewals never got a connection of their own again";
}

}  // namespace
}  // namespace baton::test
