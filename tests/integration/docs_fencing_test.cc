// docs/fencing.md, done by somebody who has nothing but the page, the command and a database.

#include <sqlite3.h>

#include <regex>
#include <sstream>

#include "integration/cli_support.h"
#include "integration/docs_page.h"
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

  // "NAME TOKEN" of one more grant, as a command under the lock sees them.
  struct Grant {
    std::string name;
    std::string token;
  };
  Grant next_grant(const std::string& store) const {
    const Finished done = baton({"run", "report/2026-11", "--store", store, "--", "sh", "-c",
                                 "echo $BATON_NAME $BATON_TOKEN"});
    EXPECT_TRUE(done.status.success()) << done.err;
    Grant grant;
    std::istringstream(done.out) >> grant.name >> grant.token;
    return grant;
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
    ASSERT_GE(sql.size(), 3U);
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
  [[nodiscard]] bool gives_a_row(const std::string& statement, const Grant& grant,
                                 const std::string& mode) const {
    sqlite3_stmt* prepared = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(database, statement.c_str(), -1, &prepared, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_bind_text(prepared, 1, grant.name.c_str(), -1, SQLITE_STATIC);
    sqlite3_bind_text(prepared, 2, mode.c_str(), -1, SQLITE_STATIC);
    sqlite3_bind_int64(prepared, 3, std::stoll(grant.token));
    const int result = sqlite3_step(prepared);
    EXPECT_TRUE(result == SQLITE_ROW || result == SQLITE_DONE) << sqlite3_errmsg(database);
    sqlite3_finalize(prepared);
    return result == SQLITE_ROW;
  }
  // As the page says, and whether it may go on.
  [[nodiscard]] bool writes(const Grant& grant, const std::string& mode,
                            bool locks_are_here) const {
    execute("BEGIN IMMEDIATE");
    const bool ok =
        gives_a_row(sql[1], grant, mode) && !(locks_are_here && gives_a_row(sql[2], grant, mode));
    execute(ok ? "COMMIT" : "ROLLBACK");
    return ok;
  }
};

TEST_F(DocsFencingSqlite, the_statements_are_those_of_the_sources) {
  EXPECT_EQ(without_comments(sql[1]),
            without_comments("\n" + source("src/store/sqlite/fence_check.sql")).substr(1));
  EXPECT_EQ(without_comments(sql[2]),
            without_comments("\n" + source("src/store/sqlite/fence_granted.sql")).substr(1));
}

TEST_F(DocsFencingSqlite, an_overtaken_writer_gets_no_row) {
  const Grant first = next_grant(store());
  const Grant second = next_grant(store());
  EXPECT_TRUE(writes(first, "X", false));
  EXPECT_TRUE(writes(second, "X", false));
  EXPECT_TRUE(writes(second, "X", false)) << "again is fine";
  EXPECT_FALSE(writes(first, "X", false));
  const Grant other{"DEFAULT:another", first.token};
  EXPECT_TRUE(writes(other, "S", false));
  EXPECT_TRUE(writes({other.name, second.token}, "S", false));
  EXPECT_TRUE(writes(other, "S", false)) << "those who share do not refuse each other";
}

TEST_F(DocsFencingSqlite, beside_the_locks_a_newer_grant_counts_before_it_has_written) {
  const std::string here = "sqlite:" + path;
  const Grant first = next_grant(here);
  const auto holder =
      hold("report/2026-11", "echo $BATON_TOKEN; echo ready; read wait", {"--store", here});
  Grant second{first.name, {}};
  std::istringstream(holder->out()) >> second.token;
  EXPECT_TRUE(writes(first, "X", false)) << "nobody newer has written";
  EXPECT_FALSE(writes(first, "X", true));
  EXPECT_TRUE(writes(second, "X", true));
  holder->write("go on\n");
  ends(*holder, 0);
}

TEST_F(DocsFencing, on_postgresql_an_overtaken_writer_fails) {
  ASSERT_FALSE(sql.empty());
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

TEST_F(DocsFencing, on_redis_an_overtaken_writer_fails) {
  const auto lua = blocks(text, "lua");
  ASSERT_EQ(lua.size(), 1U);
  EXPECT_EQ(lua, blocks(page("stores/redis.md"), "lua"));
  const std::string script = source("src/store/redis/fence.lua") + lua[0];
  const RedisServer redis;
  const auto write = [&](const std::string& token, const std::string& what) {
    redis.ask(
        {"EVAL", script, "2", "baton_fence:DEFAULT:report:2026-11", "report", "X", token, what});
  };
  write("4711", "first");
  write("4712", "second");
  EXPECT_THROW(write("4711", "late"), std::runtime_error);
  EXPECT_EQ(redis.ask({"GET", "report"}), "second");
}

}  // namespace
}  // namespace baton::test
