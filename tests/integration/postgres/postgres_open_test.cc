// What it takes to open a PostgreSQL store, and what a user is told when it does not open.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "integration/postgres/postgres_around.h"
#include "integration/postgres/postgres_database.h"
#include "store/postgres/settings.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

Error error_of_opening(const std::string& url, Deadline deadline = soon()) {
  auto store = open_postgres_store(url, deadline);
  EXPECT_FALSE(store) << "it opened";
  return store ? Error{} : store.error();
}

bool mentions(const Error& error, const std::string& text) {
  return error.message.find(text) != std::string::npos;
}

TEST(PostgresOpen, many_replicas_can_migrate_at_once) {
  const Database database;
  std::atomic<int> migrated{0};
  std::atomic<int> found_it_done{0};
  {
    std::vector<std::jthread> replicas;
    for (int i = 0; i < 8; ++i) {
      replicas.emplace_back([&] {
        const auto versions = open_postgres_admin(database.url(), soon()).value()->migrate(soon());
        ASSERT_TRUE(versions) << versions.error().message;
        EXPECT_EQ(versions->second, 1);
        ++(versions->first == 0 ? migrated : found_it_done);
      });
    }
  }
  EXPECT_EQ(migrated, 1);
  EXPECT_EQ(found_it_done, 7);
  EXPECT_EQ(ask(*database.store(), acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
}

TEST(PostgresOpen, a_database_without_the_schema_says_what_to_run) {
  const Database database;
  const Error error = error_of_opening(database.url());
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_TRUE(mentions(error, "baton store migrate --store")) << error.message;
  const auto status = open_postgres_admin(database.url(), soon()).value()->status(soon());
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->schema_version, 0);
  EXPECT_EQ(status->schema_expected, 1);
}

TEST(PostgresOpen, what_to_run_says_that_the_password_is_to_be_added) {
  const Database database;
  EXPECT_FALSE(mentions(error_of_opening(database.url()), "with the password"));
  std::string url = database.url();
  url.insert(url.find('@'), ":s3cret");
  const Error error = error_of_opening(url);
  EXPECT_TRUE(mentions(error, "baton store migrate --store")) << error.message;
  EXPECT_TRUE(mentions(error, "(with the password of that URL")) << error.message;
  EXPECT_FALSE(mentions(error, "s3cret")) << error.message;
}

class PostgresFunctions : public ::testing::Test {
 protected:
  PostgresFunctions() { database.migrate(); }
  std::string text() {
    return session.sql(
        "SELECT prosrc FROM pg_proc WHERE oid = 'baton.micros(bigint)'::regprocedure");
  }
  // As another binary of the same version would leave them.
  void replace(const std::string& mark) {
    session.sql(
        "CREATE OR REPLACE FUNCTION baton.micros(at bigint) RETURNS bigint LANGUAGE sql AS "
        "'SELECT 1::bigint'; COMMENT ON TABLE baton.meta IS '" +
        mark + "'");
  }
  void migrate() const {
    const auto versions = open_postgres_admin(database.url(), soon()).value()->migrate(soon());
    ASSERT_TRUE(versions) << versions.error().message;
    EXPECT_EQ(*versions, std::pair(1, 1));
  }

  const Database database;
  Session session{database.url()};
};

TEST_F(PostgresFunctions, of_this_binary_replace_others_when_it_migrates) {
  const std::string ours = text();
  for (const std::string mark : {"functions 77", "functions 0 77", "functions 1 77"}) {
    replace(mark);
    ASSERT_NE(text(), ours);
    migrate();
    EXPECT_EQ(text(), ours) << mark;
  }
}

TEST_F(PostgresFunctions, of_a_newer_binary_are_left_and_used) {
  replace("functions 1000 77");
  const std::string theirs = text();
  migrate();
  EXPECT_EQ(text(), theirs);
  EXPECT_TRUE(open_postgres_store(database.url(), soon()));
}

TEST_F(PostgresFunctions, of_an_older_binary_are_refused) {
  replace("functions 0 77");
  const Error error = error_of_opening(database.url());
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_TRUE(mentions(error, "old functions; run: baton store migrate --store")) << error.message;
  const auto findings =
      open_postgres_admin(database.url(), soon()).value()->examine(Millis(30'000), soon()).value();
  EXPECT_TRUE(std::any_of(findings.begin(), findings.end(),
                          [](const Finding& finding) { return finding.code == "schema"; }));
}

TEST(PostgresOpen, a_newer_schema_is_refused) {
  const Database database;
  database.migrate();
  Session(database.url()).sql("UPDATE baton.meta SET version = 99");
  const Error error = error_of_opening(database.url());
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_TRUE(mentions(error, "99")) << error.message;
  const auto again = open_postgres_admin(database.url(), soon()).value()->migrate(soon());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Code::bad_store);
}

TEST(PostgresOpen, a_database_that_is_not_there_is_a_bad_store) {
  const Database database;
  const std::string url = database.url();
  EXPECT_EQ(error_of_opening(url + "_not").code, Code::bad_store);
}

TEST(PostgresOpen, an_unreachable_server_is_unavailable_and_not_in_doubt) {
  const std::string url = "postgres://me:hush-hush@127.0.0.1:" + std::to_string(free_port()) + "/x";
  const Error error = error_of_opening(url, in(Millis(300)));
  EXPECT_EQ(error.code, Code::unavailable);
  EXPECT_TRUE(error.retryable);
  EXPECT_FALSE(error.in_doubt);
  EXPECT_FALSE(mentions(error, "hush-hush")) << error.message;
}

TEST(PostgresOpen, a_url_that_cannot_be_read_is_refused_without_showing_its_password) {
  const std::vector<std::string> bad = {
      "postgres://me:hush-hush@[::1/x",
      "postgres://me:hush-hush%zz@localhost/x",
      "mysql://me:hush-hush@localhost/x",
      "postgres://me:hush-hush@localhost/x?nonsense=hush-hush",
      "postgres://me:hush-hush@localhost/x?baton_nonsense=1",
      "postgres://me:hush-hush@localhost/x?baton_apply_timeout=hush-hush",
      "postgres://me:hush@hush-hush@localhost/x",
      "postgres://me:hush/hush-hush@localhost/x",
      "postgres://me:hush-hush@/x?host=one,two,three&port=5432,5433",
      "postgres://me:hush-hush@one/x?port=5432,5433"};
  for (const auto& url : bad) {
    const Error error = error_of_opening(url);
    EXPECT_EQ(error.code, Code::bad_url) << url;
    EXPECT_FALSE(mentions(error, "hush-hush")) << error.message;
  }
}

// What an error says to run has to work as it stands there.
TEST(PostgresOpen, the_place_that_messages_name_can_be_given_to_a_command) {
  for (const std::string place :
       {"postgres://app@db.example:5433/shop", "postgres://%2Frun%2Fpostgres:5433/shop",
        "postgres://app%40shop@one:5432,two:5433/a%20b", "postgres://[2001:db8::1]:5432/shop",
        "postgres://[fe80::1%25eth0]:5432/shop", "postgres:///shop"}) {
    const auto settings = store::postgres::parse_settings(place);
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->location, place);
  }
  EXPECT_EQ(store::postgres::parse_settings("postgres://app:s%2Fecret@db/shop?sslmode=require")
                .value()
                .location,
            "postgres://app@db/shop");
  EXPECT_EQ(
      store::postgres::parse_settings("postgres:///x?host=one,two&port=5433").value().location,
      "postgres://one:5433,two:5433/x")
      << "one port counts for all";
}

TEST(PostgresOpen, the_apply_limit_comes_from_the_url) {
  const Database database;
  database.migrate();
  EXPECT_EQ(database.store()->capabilities().apply_limit, Millis(5000));
  EXPECT_EQ(database.store("?baton_apply_timeout=700ms")->capabilities().apply_limit, Millis(700));
  EXPECT_EQ(
      database.store("?baton_apply_timeout=2s&application_name=x")->capabilities().apply_limit,
      Millis(2000));
}

// A server on which everybody but postgres needs a password.
class GuardedServer {
 public:
  GuardedServer() {
    const auto path = dir_ / "hba.conf";
    std::ofstream(path) << "local all all trust\n"
                           "host all postgres 127.0.0.1/32 trust\n"
                           "host all all 127.0.0.1/32 scram-sha-256\n";
    std::filesystem::permissions(
        dir_.path(), std::filesystem::perms::others_exec | std::filesystem::perms::owner_all);
    server_ = std::make_unique<PostgresServer>(
        PostgresOptions{.settings = {{"hba_file", path.string()}}});
  }
  [[nodiscard]] std::string url() const { return server_->url(); }

 private:
  TempDir dir_{"hba"};
  std::unique_ptr<PostgresServer> server_;
};

TEST(PostgresOpen, a_wrong_password_is_unauthorized_and_never_printed) {
  const GuardedServer server;
  const Database database(server.url());
  database.migrate();
  Session(database.url())
      .sql(
          "CREATE ROLE app LOGIN PASSWORD 'right-horse';"
          "GRANT USAGE ON SCHEMA baton TO app;"
          "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA baton TO app;"
          "GRANT USAGE ON ALL SEQUENCES IN SCHEMA baton TO app;"
          "GRANT UPDATE ON SEQUENCE baton.schema_version TO app");
  const Error error = error_of_opening(database.url_as("app:wrong-horse"));
  EXPECT_EQ(error.code, Code::unauthorized);
  EXPECT_FALSE(error.retryable);
  EXPECT_FALSE(mentions(error, "horse")) << error.message;
  const std::string right = database.url_as("app:right-horse");
  const auto store = open_postgres_store(right, soon());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(ask(**store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
  const auto status = open_postgres_admin(right, soon()).value()->status(soon());
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->location.find("horse"), std::string::npos) << status->location;
}

// As docs/stores.md says.
void grant_documented_rights(const Database& database, const std::string& role) {
  Session(database.url())
      .sql("GRANT USAGE ON SCHEMA baton TO " + role +
           ";GRANT SELECT ON ALL TABLES IN SCHEMA baton TO " + role +
           ";GRANT INSERT, UPDATE, DELETE ON baton.lock, baton.holder, baton.waiter TO " + role +
           ";GRANT USAGE ON SEQUENCE baton.counter TO " + role +
           ";GRANT SELECT ON SEQUENCE baton.schema_version TO " + role);
}

TEST(PostgresOpen, a_role_with_only_the_documented_rights_cannot_change_the_version) {
  const Database database;
  database.migrate();
  const Role role(database);
  grant_documented_rights(database, role.name());
  Session session(database.url_as(role.name()));
  for (const char* forbidden :
       {"SELECT setval('baton.schema_version', 7)", "SELECT nextval('baton.schema_version')",
        "UPDATE baton.meta SET version = 7", "DELETE FROM baton.meta",
        "INSERT INTO baton.meta (one, version) VALUES (true, 7)",
        "CREATE OR REPLACE FUNCTION baton.micros(at bigint) RETURNS bigint LANGUAGE sql AS "
        "'SELECT 1::bigint'",
        "CREATE TABLE baton.more (a int)", "DROP FUNCTION baton.tell_version"}) {
    EXPECT_THROW(session.sql(forbidden), std::runtime_error) << forbidden;
  }
  // Neither by a note that is taken back.
  const auto store = database.store();
  Request change = acquire(1, std::string(core::kSchemaKey));
  change.change = {.ordinal = 7, .text = "{}"};
  ASSERT_EQ(ask(*store, change).outcome, Outcome::granted);
  session.sql("SELECT baton.sweep('', 100, NULL)");
  session.sql("BEGIN; UPDATE baton.lock SET note_ordinal = 9 WHERE key = 'BATON:schema'");
  session.sql("SAVEPOINT a; SELECT baton.tell_version()");
  session.sql("ROLLBACK");
  EXPECT_EQ(session.sql("SELECT pg_sequence_last_value('baton.schema_version')"), "7");
  // To change the policy takes a right more.
  const auto limited = open_postgres_store(database.url_as(role.name()), soon()).value();
  const auto release = ask(*store, request(Verb::release, 1, std::string(core::kSchemaKey)));
  ASSERT_EQ(release.outcome, Outcome::done);
  change.grant = grant(2);
  change.change.ordinal = 8;
  change.schema_version = 7;
  const auto refused = ask(*limited, change, soon());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::unauthorized) << refused.error().message;
  Session(database.url()).sql("GRANT UPDATE ON SEQUENCE baton.schema_version TO " + role.name());
  const auto allowed = ask(*limited, change, soon());
  ASSERT_TRUE(allowed) << allowed.error().message;
  EXPECT_EQ(allowed->outcome, Outcome::granted);
}

// Whatever stands in the way of the server's own functions in the search path is not called.
TEST(PostgresOpen, a_search_path_with_traps_is_not_used) {
  const Database database;
  Session owner(database.url());
  owner.sql(R"(
    CREATE SCHEMA trap;
    CREATE TABLE trap.called (what text);
    CREATE FUNCTION trap.set_config(a text, b text, c boolean) RETURNS text LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO trap.called VALUES ('set_config');
         RETURN pg_catalog.set_config(a, b, c); END $$;
    CREATE FUNCTION trap.current_setting(a text) RETURNS text LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO trap.called VALUES ('current_setting');
         RETURN pg_catalog.current_setting(a); END $$;
    CREATE FUNCTION trap.nextval(a text) RETURNS bigint LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO trap.called VALUES ('nextval'); RETURN 1; END $$;
    CREATE FUNCTION trap.pg_sequence_last_value(a text) RETURNS bigint LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO trap.called VALUES ('pg_sequence_last_value'); RETURN 0; END $$)");
  owner.sql("ALTER DATABASE " + database.name() + " SET search_path = trap, public, pg_catalog");
  database.migrate();
  const auto store = database.store();
  ASSERT_EQ(ask(*store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
  ASSERT_EQ(ask(*store, acquire(2, "DEFAULT:a", Millis(5000))).outcome, Outcome::queued);
  ASSERT_EQ(ask(*store, request(Verb::release, 1, "DEFAULT:a")).outcome, Outcome::done);
  ASSERT_EQ(ask(*store, request(Verb::claim, 2, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(owner.sql("SELECT string_agg(DISTINCT what, ' ') FROM trap.called"), "");
}

TEST(PostgresOpen, what_another_role_has_put_there_is_refused_and_not_run) {
  const Database database;
  const Role role(database);
  Session owner(database.url());
  owner.sql("GRANT CREATE ON DATABASE " + database.name() + " TO " + role.name());
  Session(database.url_as(role.name())).sql(R"(
    CREATE SCHEMA baton; GRANT ALL ON SCHEMA baton TO PUBLIC;
    CREATE TABLE baton.called (by text); GRANT ALL ON baton.called TO PUBLIC;
    CREATE FUNCTION baton.trap() RETURNS integer LANGUAGE plpgsql AS
      $$ BEGIN INSERT INTO baton.called VALUES (current_user); RETURN 0; END $$;
    CREATE VIEW baton.meta AS SELECT true AS one, baton.trap() AS version;
    GRANT ALL ON baton.meta TO PUBLIC)");
  const auto admin = open_postgres_admin(database.url(), soon()).value();
  auto migrated = admin->migrate(soon());
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().code, Code::bad_store);
  EXPECT_TRUE(mentions(migrated.error(), "view baton.meta (of " + role.name() + ")"))
      << migrated.error().message;
  EXPECT_EQ(owner.sql("SELECT count(*) FROM baton.called"), "0");
  owner.sql("DROP SCHEMA baton CASCADE");
  database.migrate();
  owner.sql("ALTER FUNCTION baton.micros OWNER TO " + role.name());
  migrated = admin->migrate(soon());
  ASSERT_FALSE(migrated) << "also if there is nothing to do";
  EXPECT_TRUE(mentions(migrated.error(), "function baton.micros")) << migrated.error().message;
  owner.sql("ALTER FUNCTION baton.micros OWNER TO postgres");
  EXPECT_TRUE(admin->migrate(soon()));
}

TEST(PostgresOpen, a_role_migrates_what_a_role_owns_that_it_is_a_member_of) {
  const Database database;
  const Role role(database);
  const std::string group = "group_" + database.name();
  Session owner(database.url());
  owner.sql("CREATE ROLE " + group + "; GRANT " + group + " TO " + role.name() +
            "; GRANT CREATE ON DATABASE " + database.name() + " TO " + group);
  const auto migrate = [&] {
    const auto admin = open_postgres_admin(database.url_as(role.name()), soon()).value();
    const auto migrated = admin->migrate(soon());
    EXPECT_TRUE(migrated) << migrated.error().message;
  };
  owner.sql("ALTER ROLE " + role.name() + " SET role = " + group);
  migrate();
  EXPECT_EQ(owner.sql("SELECT nspowner::regrole FROM pg_namespace WHERE nspname = 'baton'"), group);
  owner.sql("ALTER ROLE " + role.name() + " RESET role");
  migrate();
  owner.sql("DROP OWNED BY " + group + " CASCADE; DROP ROLE " + group);
}

TEST(PostgresOpen, a_role_with_only_the_documented_rights_can_do_everything) {
  const Database database;
  database.migrate();
  const Role role(database);
  grant_documented_rights(database, role.name());
  const auto store = open_postgres_store(database.url_as(role.name()), soon()).value();
  EXPECT_EQ(ask(*store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(ask(*store, acquire(2, "DEFAULT:a", Millis(5000))).outcome, Outcome::queued);
  EXPECT_EQ(ask(*store, request(Verb::renew, 1, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(ask(*store, request(Verb::release, 1, "DEFAULT:a")).outcome, Outcome::done);
  EXPECT_EQ(ask(*store, request(Verb::claim, 2, "DEFAULT:a")).outcome, Outcome::granted);
  EXPECT_EQ(store->find({}, soon()).value().items.size(), 1U);
  EXPECT_EQ(Session(database.url_as(role.name())).sql("SELECT baton.sweep('', 100, NULL)"), "");
}

TEST(PostgresOpen, a_role_with_only_the_documented_rights_tells_a_version_whose_author_died) {
  const Database database;
  database.migrate();
  const Role role(database);
  grant_documented_rights(database, role.name());
  const auto store = database.store();
  Request change = acquire(1, std::string(core::kSchemaKey));
  change.change = {.ordinal = 7, .text = "{}"};
  ASSERT_EQ(ask(*store, change).outcome, Outcome::granted);
  Session session(database.url_as(role.name()));
  const std::string told = "SELECT pg_sequence_last_value('baton.schema_version')";
  ASSERT_EQ(session.sql(told), "") << "its author has told it already";
  session.sql("SELECT baton.sweep('', 100, NULL)");
  EXPECT_EQ(session.sql(told), "7");
}

TEST(PostgresOpen, missing_rights_are_named) {
  const Database database;
  const Role role(database);
  const auto admin = open_postgres_admin(database.url_as(role.name()), soon()).value();
  const auto migrated = admin->migrate(soon());
  ASSERT_FALSE(migrated);
  EXPECT_EQ(migrated.error().code, Code::unauthorized);
  EXPECT_TRUE(mentions(migrated.error(), "CREATE on the database")) << migrated.error().message;
  database.migrate();
  Error error = error_of_opening(database.url_as(role.name()));
  EXPECT_EQ(error.code, Code::unauthorized);
  EXPECT_TRUE(mentions(error, "USAGE on schema baton")) << error.message;
  EXPECT_TRUE(mentions(error, "GRANT USAGE ON SCHEMA baton TO " + role.name() + ";"))
      << error.message;
  Session(database.url())
      .sql("GRANT USAGE ON SCHEMA baton TO " + role.name() +
           ";GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA baton TO " + role.name());
  error = error_of_opening(database.url_as(role.name()));
  EXPECT_TRUE(mentions(error, "DELETE on baton.lock")) << error.message;
  EXPECT_TRUE(mentions(error, "sequence baton.counter")) << error.message;
  // What it says is all that it takes.
  Session(database.url()).sql(error.message.substr(error.message.find("GRANT ")));
  EXPECT_TRUE(open_postgres_store(database.url_as(role.name()), soon()));
}

TEST(PostgresOpen, a_transaction_pooling_proxy_is_refused) {
  const Database database;
  database.migrate();
  const Bouncer bouncer(database, "transaction");
  const Error error = error_of_opening(bouncer.url());
  EXPECT_EQ(error.code, Code::bad_store);
  EXPECT_TRUE(mentions(error, "transaction-pooling proxy")) << error.message;
}

TEST(PostgresOpen, a_session_pooling_proxy_is_fine) {
  const Database database;
  database.migrate();
  const Bouncer bouncer(database, "session");
  const auto store = open_postgres_store(bouncer.url(), soon());
  ASSERT_TRUE(store) << store.error().message;
  EXPECT_EQ(ask(**store, acquire(1, "DEFAULT:a")).outcome, Outcome::granted);
}

TEST(PostgresOpen, raised_tokens_stay_above_the_floor) {
  const Database database;
  database.migrate();
  const auto store = database.store();
  const auto admin = open_postgres_admin(database.url(), soon()).value();
  const Token before = ask(*store, acquire(1, "DEFAULT:a")).tokens.at(0);
  ASSERT_TRUE(admin->raise_tokens(before + 1000, soon()));
  const Token after = ask(*store, acquire(2, "DEFAULT:b")).tokens.at(0);
  EXPECT_GT(after, before + 1000);
  ASSERT_TRUE(admin->raise_tokens(5, soon()));
  EXPECT_GT(ask(*store, acquire(3, "DEFAULT:c")).tokens.at(0), after);
}

}  // namespace
}  // namespace baton::test
