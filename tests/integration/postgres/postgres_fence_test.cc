// The fence: a holder that was overtaken cannot write, however late it comes.

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "baton/fence.h"
#include "integration/postgres/postgres_database.h"
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

// Where anybody may create functions in public, one that fits the arguments better than the
// server's own must neither run with our rights nor tell us a token.
TEST_F(PostgresFence, the_highest_token_is_not_asked_of_a_foreign_function) {
  Session session(database.url());
  EXPECT_TRUE(write(session, "first", 8));
  session.sql(
      "CREATE FUNCTION public.unnest(bigint[]) RETURNS SETOF bigint LANGUAGE sql AS"
      " 'SELECT 4611686018427387900'");
  EXPECT_EQ(highest_fenced(session.get()).value(), 8U);
}

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
    EXPECT_EQ(write(app, "not yet", 3).error().code, Code::unauthorized) << "PUBLIC may not";
    owner.sql(
        "GRANT EXECUTE ON FUNCTION public.baton_fence(text),"
        " public.baton_fence(text, text, bigint) TO " +
        role);
    EXPECT_TRUE(write(app, "by the app", 3));
    EXPECT_EQ(app.sql("SELECT public.baton_fence('" + kKey + "', 'X', 3)"), "");
    EXPECT_FALSE(write(app, "too late", 2));
    EXPECT_THROW(app.sql("DELETE FROM baton_fence.seen"), std::runtime_error);
  }
  owner.sql("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_F(PostgresFence, whoever_lacks_rights_is_told_the_grant_that_is_needed) {
  const std::string role = "lacking_" + database.name();
  Session owner(database.url());
  owner.sql("CREATE ROLE " + role + " LOGIN; REVOKE CREATE ON SCHEMA public FROM PUBLIC");
  const auto grant_in = [](const std::string& message) {
    const auto at = message.find("GRANT ");
    return at == std::string::npos ? "no GRANT in: " + message : message.substr(at);
  };
  {
    Session app(database.url_as(role));
    app.sql("BEGIN");
    const auto refused = fence(app.get(), kKey, Mode::X, 3);
    app.sql("ROLLBACK");
    ASSERT_FALSE(refused);
    owner.sql(grant_in(refused.error().message));
    app.sql("BEGIN");
    EXPECT_TRUE(fence(app.get(), kKey, Mode::X, 3));
    app.sql("ROLLBACK");
  }
  owner.sql(
      "DROP SCHEMA baton_fence CASCADE; DROP FUNCTION public.baton_fence(text);"
      "DROP FUNCTION public.baton_fence(text, text, bigint)");
  {
    Session app(database.url_as(role));
    const auto refused = install_fence(app.get());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::unauthorized);
    owner.sql(grant_in(refused.error().message));
    const auto installed = install_fence(app.get());
    EXPECT_TRUE(installed) << installed.error().message;
  }
  owner.sql("DROP OWNED BY " + role + " CASCADE; DROP ROLE " + role);
}

TEST_F(PostgresFence, it_works_where_its_owner_may_not_look_at_the_locks) {
  database.migrate();
  const std::string role = "owner_" + database.name();
  Session owner(database.url());
  owner.sql("CREATE ROLE " + role + "; ALTER SCHEMA baton_fence OWNER TO " + role +
            "; ALTER TABLE baton_fence.seen OWNER TO " + role +
            "; ALTER FUNCTION public.baton_fence(text, text, bigint) OWNER TO " + role +
            "; ALTER FUNCTION public.baton_fence(text) OWNER TO " + role +
            "; ALTER FUNCTION baton_fence.pass(text[], text[], bigint[]) OWNER TO " + role +
            "; ALTER FUNCTION baton_fence.may_look(text, text[]) OWNER TO " + role);
  EXPECT_TRUE(write(owner, "new", 3));
  EXPECT_FALSE(write(owner, "too late", 2));
  owner.sql("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

// A role that may create a schema could put a view there that runs with the rights of the fence.
TEST_F(PostgresFence, tables_of_another_role_are_not_looked_at) {
  const std::string role = "stranger_" + database.name();
  Session owner(database.url());
  owner.sql("CREATE ROLE " + role + "; CREATE TABLE seen_by_trap (who text)");
  owner.sql(
      "CREATE SCHEMA baton;"
      "CREATE FUNCTION baton.trap() RETURNS bigint LANGUAGE plpgsql AS $$"
      " BEGIN INSERT INTO public.seen_by_trap VALUES (current_user); RETURN 1; END $$;"
      "CREATE VIEW baton.lock AS SELECT '" +
      kKey +
      "'::text AS key, baton.trap() AS token, 5 AS mode;"
      "CREATE VIEW baton.holding AS SELECT * FROM baton.lock;"
      "CREATE VIEW baton.holder AS SELECT * FROM baton.lock");
  for (const char* what : {"SCHEMA baton", "VIEW baton.lock", "VIEW baton.holding",
                           "VIEW baton.holder", "FUNCTION baton.trap()"}) {
    owner.sql("ALTER " + std::string(what) + " OWNER TO " + role);
  }
  EXPECT_TRUE(write(owner, "new", 3));
  EXPECT_EQ(owner.sql("SELECT count(*) FROM seen_by_trap"), "0");
  owner.sql("DROP OWNED BY " + role + " CASCADE; DROP ROLE " + role);
}

TEST_F(PostgresFence, what_another_role_owns_is_not_built_on) {
  const std::string role = "stranger_" + database.name();
  Session owner(database.url());
  owner.sql("CREATE ROLE " + role);
  for (const char* what :
       {"SCHEMA baton_fence", "TABLE baton_fence.seen", "FUNCTION public.baton_fence(text)",
        "FUNCTION baton_fence.pass(text[], text[], bigint[])"}) {
    owner.sql("ALTER " + std::string(what) + " OWNER TO " + role);
    const auto installed = install_fence(owner.get());
    ASSERT_FALSE(installed) << what;
    EXPECT_EQ(installed.error().code, Code::unauthorized);
    EXPECT_NE(installed.error().message.find(role), std::string::npos) << installed.error().message;
    owner.sql("ALTER " + std::string(what) + " OWNER TO current_user");
  }
  owner.sql(
      "CREATE FUNCTION public.baton_fence(text, text, integer) RETURNS void"
      " LANGUAGE sql AS 'SELECT'");
  owner.sql("ALTER FUNCTION public.baton_fence(text, text, integer) OWNER TO " + role);
  EXPECT_FALSE(install_fence(owner.get())) << "it would be called in place of ours";
  owner.sql("DROP FUNCTION public.baton_fence(text, text, integer); DROP ROLE " + role);
  EXPECT_TRUE(install_fence(owner.get()));
}

TEST_F(PostgresFence, installing_leaves_the_settings_of_the_session_alone) {
  Session session(database.url());
  session.sql("BEGIN; SET LOCAL search_path = pg_temp, public");
  ASSERT_TRUE(install_fence(session.get()));
  EXPECT_EQ(session.sql("SHOW search_path"), "pg_temp, public");
  session.sql("COMMIT");
}

// Waits until a session of this database waits for a lock.
class PostgresFenceLevels : public PostgresFence,
                            public ::testing::WithParamInterface<const char*> {
 protected:
  bool somebody_waits() {
    return poll_until([&] {
      return watcher_.sql(
                 "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                 "AND wait_event_type = 'Lock'") == "1";
    });
  }
  void begin(Session& session) { session.sql(std::string("BEGIN ISOLATION LEVEL ") + GetParam()); }

 private:
  Session watcher_{database.url()};
};
INSTANTIATE_TEST_SUITE_P(Levels, PostgresFenceLevels,
                         ::testing::Values("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"),
                         [](const auto& level) {
                           std::string name = level.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

// The second transaction of a holder has no new token to record. Its successor must see what it
// wrote all the same, or fail.
TEST_P(PostgresFenceLevels, a_successor_never_works_with_what_was_there_before_its_predecessor) {
  Session paused(database.url());
  Session next(database.url());
  ASSERT_TRUE(write(paused, "first", 7));
  begin(paused);
  ASSERT_TRUE(fence(paused.get(), kKey, Mode::X, 7));
  paused.sql("UPDATE report SET content = 'second'");
  begin(next);
  Result<void> passed;
  std::jthread successor([&] { passed = fence(next.get(), kKey, Mode::X, 8); });
  ASSERT_TRUE(somebody_waits());
  paused.sql("COMMIT");
  successor.join();
  if (passed) {
    EXPECT_EQ(next.sql("SELECT content FROM report"), "second");
  } else {
    EXPECT_TRUE(passed.error().retryable) << passed.error().message;
    EXPECT_EQ(passed.error().code, Code::unavailable);
    EXPECT_NE(passed.error().message.find("repeat"), std::string::npos) << passed.error().message;
    next.sql("ROLLBACK");
    begin(next);
    ASSERT_TRUE(fence(next.get(), kKey, Mode::X, 8));
    EXPECT_EQ(next.sql("SELECT content FROM report"), "second");
  }
  next.sql("COMMIT");
  begin(paused);
  const auto late = fence(paused.get(), kKey, Mode::X, 7);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::fenced);
  paused.sql("ROLLBACK");
}

TEST_P(PostgresFenceLevels, a_transaction_that_is_older_than_its_successors_write_is_not_let_in) {
  Session paused(database.url());
  Session next(database.url());
  begin(paused);
  EXPECT_EQ(paused.sql("SELECT content FROM report"), "");  // takes its snapshot
  ASSERT_TRUE(write(next, "new", 8));
  const auto late = fence(paused.get(), kKey, Mode::X, 7);
  ASSERT_FALSE(late);
  EXPECT_TRUE(late.error().code == Code::fenced || late.error().retryable) << late.error().message;
  paused.sql("ROLLBACK");
}

TEST_P(PostgresFenceLevels, the_first_of_a_name_is_seen_too) {
  Session first(database.url());
  Session second(database.url());
  begin(first);
  ASSERT_TRUE(fence(first.get(), kKey, Mode::X, 8));
  begin(second);
  Result<void> passed;
  std::jthread late([&] { passed = fence(second.get(), kKey, Mode::X, 7); });
  ASSERT_TRUE(somebody_waits());
  first.sql("COMMIT");
  late.join();
  ASSERT_FALSE(passed);
  EXPECT_TRUE(passed.error().code == Code::fenced || passed.error().retryable)
      << passed.error().message;
  second.sql("ROLLBACK");
}

// Every session takes the rows of a lease in one order, whatever the order in which it names them.
TEST_P(PostgresFenceLevels, two_leases_with_the_same_names_do_not_deadlock) {
  Session one(database.url());
  Session two(database.url());
  begin(one);
  ASSERT_TRUE(fence(one.get(), "DEFAULT:a", Mode::S, 1));
  begin(two);
  std::jthread other([&] {
    // From b to a: if b were taken first, `one` below would wait for it, and it for `one`.
    try {
      two.sql(R"(SELECT public.baton_fence('[{"name":"DEFAULT:b","mode":"S","token":"2"},)"
              R"({"name":"DEFAULT:a","mode":"S","token":"2"}]'))");
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).find("deadlock"), std::string::npos) << error.what();
    }
  });
  ASSERT_TRUE(somebody_waits());
  const auto passed = fence(one.get(), "DEFAULT:b", Mode::S, 1);
  EXPECT_TRUE(passed) << passed.error().message;
  one.sql("COMMIT");
  other.join();
  two.sql("ROLLBACK");
}

TEST_F(PostgresFence, a_rollback_to_a_savepoint_undoes_the_fences_that_came_after_it) {
  Session session(database.url());
  Session next(database.url());
  session.sql("BEGIN");
  ASSERT_TRUE(fence(session.get(), kKey, Mode::X, 7));
  session.sql("SAVEPOINT inner_part");
  ASSERT_TRUE(fence(session.get(), "DEFAULT:other", Mode::X, 7));
  session.sql("ROLLBACK TO SAVEPOINT inner_part");
  next.sql("BEGIN; SET LOCAL lock_timeout = '100ms'");
  EXPECT_TRUE(fence(next.get(), "DEFAULT:other", Mode::X, 6)) << "neither locked nor recorded";
  const auto kept_out = fence(next.get(), kKey, Mode::X, 8);
  ASSERT_FALSE(kept_out) << "what came before the savepoint holds";
  EXPECT_TRUE(kept_out.error().retryable) << kept_out.error().message;
  next.sql("ROLLBACK");
  session.sql("COMMIT");
}

TEST_F(PostgresFence, a_refusal_inside_a_savepoint_leaves_no_trace) {
  Session session(database.url());
  ASSERT_TRUE(write(session, "new", 8));
  session.sql("BEGIN; SAVEPOINT inner_part");
  const std::vector<FenceToken> old{{"DEFAULT:a", Mode::X, 7}, {kKey, Mode::X, 7}};
  EXPECT_FALSE(fence(session.get(), old));
  session.sql("ROLLBACK TO SAVEPOINT inner_part; COMMIT");
  EXPECT_EQ(session.sql("SELECT count(*) FROM baton_fence.seen"), "1");
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
