// The fence: a holder that was overtaken cannot write, however late it comes.

#include <gtest/gtest.h>

#include <thread>

#include "baton/fence.h"
#include "postgres_database.h"
#include "support/process.h"
#include "support/wait.h"

namespace baton::test {
namespace {

const std::string kKey = "DEFAULT:report:2026-11";

class PostgresFence : public ::testing::Test {
 protected:
  PostgresFence() {
    Session session(database.url());
    install_fence(session.get()).value();
    session.sql("CREATE TABLE report (content text); INSERT INTO report VALUES ('')");
  }

  // Everything a careful writer does.
  Result<void> write(Session& session, const std::string& content, Token token) {
    session.sql("BEGIN");
    if (auto allowed = fence(session.get(), kKey, Mode::X, token); !allowed) {
      session.sql("ROLLBACK");
      return allowed;
    }
    session.sql("UPDATE report SET content = '" + content + "'");
    session.sql("COMMIT");
    return {};
  }
  std::string content() { return Session(database.url()).sql("SELECT content FROM report"); }

  Database database;
};

TEST_F(PostgresFence, an_overtaken_holder_cannot_write) {
  Session session(database.url());
  EXPECT_TRUE(write(session, "old", 7));
  EXPECT_TRUE(write(session, "old again", 7));
  EXPECT_TRUE(write(session, "new", 8));
  const auto late = write(session, "too late", 7);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::fenced);
  EXPECT_EQ(content(), "new");
  EXPECT_EQ(highest_fenced(session.get()).value(), 8U);
}

TEST_F(PostgresFence, a_holder_paused_before_its_commit_holds_its_successor_up) {
  Session paused(database.url());
  Session next(database.url());
  Session watcher(database.url());
  paused.sql("BEGIN");
  ASSERT_TRUE(fence(paused.get(), kKey, Mode::X, 7));
  paused.sql("UPDATE report SET content = 'old'");
  std::jthread successor([&] { EXPECT_TRUE(write(next, "new", 8)); });
  ASSERT_TRUE(poll_until([&] {
    return watcher.sql(
               "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
               "AND wait_event_type = 'Lock'") == "1";
  }));
  paused.sql("COMMIT");
  successor.join();
  EXPECT_EQ(content(), "new");
}

TEST_F(PostgresFence, a_holder_paused_before_the_fence_is_refused_when_it_resumes) {
  Session paused(database.url());
  Session next(database.url());
  paused.sql("BEGIN");
  ASSERT_TRUE(write(next, "new", 8));
  const auto resumed = fence(paused.get(), kKey, Mode::X, 7);
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, Code::fenced);
  paused.sql("ROLLBACK");
  EXPECT_EQ(content(), "new");
}

TEST_F(PostgresFence, only_modes_that_cannot_stand_side_by_side_fence_each_other_off) {
  for (const Mode newer : kAllModes) {
    for (const Mode older : kAllModes) {
      Session session(database.url());
      session.sql("BEGIN");
      const std::string key =
          kKey + std::string(short_name(newer)) + std::string(short_name(older));
      ASSERT_TRUE(fence(session.get(), key, newer, 9));
      const auto checked = fence(session.get(), key, older, 5);
      EXPECT_EQ(checked.has_value(), compatible(newer, older))
          << short_name(newer) << " then " << short_name(older);
      session.sql("ROLLBACK");
    }
  }
}

TEST_F(PostgresFence, a_fence_outside_a_transaction_protects_nothing_and_is_refused) {
  Session session(database.url());
  const auto checked = fence(session.get(), kKey, Mode::X, 7);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::bad_request);
}

TEST_F(PostgresFence, a_lock_granted_in_the_same_database_fences_off_before_its_holder_writes) {
  database.migrate();
  const auto store = database.store();
  const Token old = ask(*store, acquire(1, kKey)).tokens.at(0);
  Session session(database.url());
  ASSERT_TRUE(write(session, "old", old));
  ask(*store, request(Verb::release, 1, kKey));
  ASSERT_TRUE(write(session, "nobody came yet", old));
  const Token next = ask(*store, acquire(2, kKey)).tokens.at(0);
  const auto late = write(session, "too late", old);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::fenced);
  EXPECT_TRUE(write(session, "new", next));
  ask(*store, request(Verb::release, 2, kKey));
  EXPECT_FALSE(write(session, "too late", old));
}

TEST_F(PostgresFence, installing_again_and_by_many_at_once_is_harmless) {
  std::vector<std::jthread> replicas;
  for (int i = 0; i < 8; ++i) {
    replicas.emplace_back([&] {
      Session session(database.url());
      const auto installed = install_fence(session.get());
      EXPECT_TRUE(installed) << installed.error().message;
    });
  }
}

TEST_F(PostgresFence, an_application_role_needs_no_right_but_to_write_its_own_data) {
  const std::string role = "fenced_" + database.name();
  Session owner(database.url());
  owner.sql("CREATE ROLE " + role + " LOGIN; GRANT SELECT, UPDATE ON report TO " + role);
  {
    Session app(database.url_as(role));
    EXPECT_TRUE(write(app, "by the app", 3));
    EXPECT_FALSE(write(app, "too late", 2));
    EXPECT_THROW(app.sql("DELETE FROM baton_fence.seen"), std::runtime_error);
  }
  owner.sql("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_F(PostgresFence, it_works_where_its_owner_may_not_look_at_the_locks) {
  database.migrate();
  const std::string role = "owner_" + database.name();
  Session owner(database.url());
  owner.sql("CREATE ROLE " + role + "; ALTER SCHEMA baton_fence OWNER TO " + role +
            "; ALTER TABLE baton_fence.seen OWNER TO " + role +
            "; ALTER FUNCTION public.baton_fence(text, text, bigint) OWNER TO " + role);
  EXPECT_TRUE(write(owner, "new", 3));
  EXPECT_FALSE(write(owner, "too late", 2));
  owner.sql("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_F(PostgresFence, psql_can_use_it) {
  const auto psql = [&](const std::string& sql) {
    return run({.argv = {"psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", database.url(), "-c",
                         "\\set VERBOSITY verbose", "-c", sql}});
  };
  EXPECT_TRUE(psql("SELECT baton_fence('" + kKey + "', 'exclusive', 8)").status.success());
  const auto refused = psql("SELECT baton_fence('" + kKey + "', 'x', 7)");
  EXPECT_FALSE(refused.status.success());
  EXPECT_NE(refused.err.find("BT001"), std::string::npos) << refused.err;
  EXPECT_FALSE(psql("SELECT baton_fence('" + kKey + "', 'nonsense', 9)").status.success());
}

}  // namespace
}  // namespace baton::test
