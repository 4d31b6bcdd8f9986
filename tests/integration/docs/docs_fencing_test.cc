// docs/fencing.md, done by somebody who has nothing but the page, the command and a database.

#include <sqlite3.h>

#include <regex>
#include <sstream>

#include "integration/cli/cli_support.h"
#include "integration/docs/docs_page.h"
#include "support/postgres_database.h"
#include "support/redis_server.h"

namespace baton::test {
namespace {

std::string source(const std::string& path) {
  std::ifstream file(std::string(BATON_SOURCE_DIR "/") + path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::string without_comments(const std::string& text) {
  return std::regex_replace(text, std::regex("(^|\n)--[^\n]*"), "");
}

class DocsFencing : public CliTest {
 protected:
  const std::string text = page("fencing.md");
  const std::vector<std::string> sql = blocks(text, "sql");

  // $BATON_FENCE of one more grant, as a command under the lock sees it.
  std::string next_lease(const std::string& store) const {
    const Finished done = baton({"run", "report/2026-11", "--store", store, "--", "sh", "-c",
                                 "printf %s \"$BATON_FENCE\""});
    EXPECT_TRUE(done.status.success()) << done.err;
    return done.out;
  }
  void install(const std::string& database) const {
    const Finished done = baton({"fence", "install", "--database", database});
    EXPECT_TRUE(done.status.success()) << done.err;
  }
};

class DocsFencingSqlite : public DocsFencing {
 protected:
  const std::string path = dir_ / "shop.db";
  sqlite3* database = nullptr;

  void SetUp() override {
    ASSERT_EQ(sql.size(), 4U);
    ASSERT_EQ(sqlite3_open(path.c_str(), &database), SQLITE_OK);
    sqlite3_busy_timeout(database, 30'000);
    execute("CREATE TABLE report (token INTEGER)");
    install("sqlite:" + path);
  }
  void TearDown() override { sqlite3_close(database); }

  void execute(const char* statement) const {
    EXPECT_EQ(sqlite3_exec(database, statement, nullptr, nullptr, nullptr), SQLITE_OK)
        << statement << ": " << sqlite3_errmsg(database);
  }
  [[nodiscard]] bool gives_a_row(const std::string& statement, const std::string& lease) const {
    sqlite3_stmt* prepared = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database, statement.c_str(), -1, &prepared, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_bind_text(prepared, 1, lease.c_str(), -1, SQLITE_STATIC);
    const int result = sqlite3_step(prepared);
    EXPECT_TRUE(result == SQLITE_ROW || result == SQLITE_DONE) << sqlite3_errmsg(database);
    sqlite3_finalize(prepared);
    return result == SQLITE_ROW;
  }
  // As the page says, and whether it may go on.
  [[nodiscard]] bool writes(const std::string& lease, bool locks_are_here = false) const {
    execute("BEGIN IMMEDIATE");
    const bool ok = gives_a_row(sql[2], lease) && !(locks_are_here && gives_a_row(sql[3], lease));
    execute(ok ? "COMMIT" : "ROLLBACK");
    return ok;
  }
};

TEST_F(DocsFencingSqlite, the_statements_are_those_of_the_sources) {
  EXPECT_EQ(without_comments(sql[2]),
            without_comments("\n" + source("src/store/sqlite/fence_check.sql")).substr(1));
  EXPECT_EQ(without_comments(sql[3]),
            without_comments("\n" + source("src/store/sqlite/fence_granted.sql")).substr(1));
}

TEST_F(DocsFencingSqlite, an_overtaken_writer_gets_no_row) {
  const std::string first = next_lease(store());
  const std::string second = next_lease(store());
  EXPECT_TRUE(writes(first));
  EXPECT_TRUE(writes(second));
  EXPECT_TRUE(writes(second)) << "again is fine";
  EXPECT_FALSE(writes(first));
  const auto shared = [](int token) {
    return "[{\"name\":\"DEFAULT:another\",\"mode\":\"S\",\"token\":" + std::to_string(token) +
           "}]";
  };
  EXPECT_TRUE(writes(shared(5)));
  EXPECT_TRUE(writes(shared(6)));
  EXPECT_TRUE(writes(shared(5))) << "those who share do not refuse each other";
}

TEST_F(DocsFencingSqlite, what_is_no_lease_gets_no_row) {
  for (const char* wrong :
       {"[]", "5", R"([{"name":"a","mode":"Y","token":"5"}])", R"([{"name":"a","token":"5"}])",
        R"([{"name":"a","mode":"X"}])", R"([{"mode":"X","token":"5"}])",
        R"([{"name":"a","mode":"X","token":"0"}])",
        R"([{"name":"a","mode":"X","token":"4611686018427387905"}])",
        R"([{"name":"a","mode":"X","token":"5"},{"name":"b","mode":"","token":"5"}])"}) {
    EXPECT_FALSE(writes(wrong)) << wrong;
  }
}

TEST_F(DocsFencingSqlite, beside_the_locks_a_newer_grant_counts_before_it_has_written) {
  const std::string here = "sqlite:" + path;
  const std::string first = next_lease(here);
  const auto holder =
      hold("report/2026-11", "echo $BATON_FENCE; echo ready; read wait", {"--store", here});
  std::string second;
  std::getline(std::istringstream(holder->out()), second);
  EXPECT_TRUE(writes(first)) << "nobody newer has written";
  EXPECT_FALSE(writes(first, true));
  EXPECT_TRUE(writes(second, true));
  holder->write("go on\n");
  ends(*holder, 0);
}

TEST_F(DocsFencing, on_postgresql_an_overtaken_writer_fails) {
  ASSERT_EQ(sql.size(), 4U);
  const Database database;
  install(database.url());
  Session session(database.url());
  session.sql("CREATE TABLE report (month text, state text)");
  session.sql(sql[0]);
  EXPECT_EQ(session.sql("SELECT count(*) FROM report"), "1");
  const std::string late = std::regex_replace(sql[0], std::regex("4711"), "4710");
  ASSERT_NE(late, sql[0]);
  EXPECT_THROW(session.sql(late), std::runtime_error);
  EXPECT_NO_THROW(session.sql("ROLLBACK"));
  EXPECT_EQ(session.sql("SELECT count(*) FROM report"), "1");
}

TEST_F(DocsFencing, on_postgresql_a_shell_script_of_an_overtaken_holder_fails_and_writes_nothing) {
  const auto scripts = blocks(text, "sh");
  ASSERT_EQ(scripts.size(), 1U);
  const Database database;
  install(database.url());
  Session session(database.url());
  session.sql("CREATE TABLE report (month text PRIMARY KEY)");
  const auto run_under = [&](const std::string& lease) {
    auto made = options({});
    made.argv = {"/bin/sh", "-c", scripts[0]};
    made.env["DATABASE"] = database.url();
    made.env["BATON_FENCE"] = lease;
    return run(made);
  };
  const std::string first = next_lease(store());
  const std::string second = next_lease(store());
  EXPECT_TRUE(run_under(second).status.success());
  EXPECT_EQ(session.sql("SELECT count(*) FROM report"), "1");
  session.sql("DELETE FROM report");
  const Finished late = run_under(first);
  EXPECT_FALSE(late.status.success());
  EXPECT_NE(late.err.find("fenced"), std::string::npos) << late.err;
  EXPECT_EQ(session.sql("SELECT count(*) FROM report"), "0");
}

TEST_F(DocsFencing, on_postgresql_a_role_needs_the_grant_that_is_printed) {
  ASSERT_EQ(sql.size(), 4U);
  const Database database;
  install(database.url());
  Session owner(database.url());
  const std::string role = "app_" + database.name();
  owner.sql("CREATE ROLE " + role + " LOGIN");
  const std::string lease = next_lease(store());
  {
    Session app(database.url_as(role));
    EXPECT_THROW(app.sql("SELECT public.baton_fence('" + lease + "')"), std::runtime_error);
    owner.sql(std::regex_replace(sql[1], std::regex("TO app"), "TO " + role));
    EXPECT_NO_THROW(app.sql("SELECT public.baton_fence('" + lease + "')"));
  }
  owner.sql("DROP OWNED BY " + role + "; DROP ROLE " + role);
}

TEST_F(DocsFencing, on_redis_an_overtaken_writer_fails) {
  const auto lua = blocks(text, "lua");
  ASSERT_EQ(lua.size(), 1U);
  EXPECT_EQ(lua, blocks(page("stores/redis.md"), "lua"));
  const std::string script = source("src/store/redis/fence.lua") + lua[0];
  const RedisServer redis;
  const auto write = [&](const std::string& lease, const std::string& what) {
    redis.ask({"EVAL", script, "1", "report", lease, what});
  };
  const std::string first = next_lease(store());
  const std::string second = next_lease(store());
  write(first, "first");
  write(second, "second");
  EXPECT_THROW(write(first, "late"), std::runtime_error);
  EXPECT_EQ(redis.ask({"GET", "report"}), "second");
}

TEST_F(DocsFencing, the_lease_that_is_printed_is_one) {
  const auto json = blocks(text, "json");
  ASSERT_EQ(json.size(), 1U);
  const RedisServer redis;
  EXPECT_NO_THROW(
      redis.ask({"EVAL", source("src/store/redis/fence.lua") + "return baton_fence_lease(ARGV[1])",
                 "0", json[0]}));
  EXPECT_EQ(redis.ask({"HGET", "baton_fence:DEFAULT:document:fs-1:7", "IX"}), "4711");
}

}  // namespace
}  // namespace baton::test
