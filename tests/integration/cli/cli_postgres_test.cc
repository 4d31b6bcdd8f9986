#include <cstdlib>

#include "integration/cli/cli_any_store.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

// A server of its own: these tests create databases and users, and change how it asks for
// passwords.
struct PostgresPlace {
  PostgresServer server;
  int databases = 0;
  std::string database() const { return "cli_" + std::to_string(databases); }
  std::string fresh() {
    ++databases;
    server.sql("CREATE DATABASE " + database());
    return server.url(database());
  }
  std::string absent() const {
    return "postgres://me:secret@127.0.0.1:" + std::to_string(free_port()) + "/" + database();
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Postgres, CliAnyStore, PostgresPlace);

class CliPostgres : public CliAnyStore<PostgresPlace> {
 protected:
  void SetUp() override { env_["BATON_STORE"] = place().fresh(); }  // without the schema
};

TEST_F(CliPostgres, a_database_without_the_schema_says_what_to_do) {
  refuses({"lock", "find"}, 1, "bad_store", "baton store migrate");
  EXPECT_NE(baton({"store", "status"}).out.find("none; run 'baton store migrate'"),
            std::string::npos);
  EXPECT_EQ(baton({"store", "migrate"}).status.code, 0);
  EXPECT_NE(baton({"store", "migrate"}).out.find("already"), std::string::npos);
  EXPECT_EQ(baton({"lock", "find"}).out, "no locks\n");
}

TEST_F(CliPostgres, a_fence_on_a_server_that_is_not_there_is_unavailable) {
  refuses({"fence", "check", "--key", "DEFAULT:job", "1", "--database", place().absent()}, 1,
          "unavailable", "127.0.0.1");
}

TEST_F(CliPostgres, a_malformed_url_is_refused_without_repeating_it) {
  for (const auto* url :
       {"postgres://u:s3cret@h:port/x", "postgres://u:s3cret@h/x?nonsense=1",
        "postgres://u:s3c@ret@h/x", "postgres://u:s3c/ret@h/x", "postgres://u:s3cret@[::1/x"}) {
    for (const Words& words :
         {Words{"lock", "find", "--store", url}, Words{"fence", "install", "--database", url}}) {
      refuses(words, 2, "bad_url", "");
      const auto told = baton(words).err;
      EXPECT_EQ(told.find("s3c"), std::string::npos) << told;
    }
  }
}

TEST_F(CliPostgres, a_schema_of_a_newer_baton_is_refused) {
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  place().server.sql("UPDATE baton.meta SET version = 99", place().database());
  refuses({"lock", "find"}, 1, "bad_store", "newer");
}

TEST_F(CliPostgres, a_token_is_checked_against_the_fence) {
  const std::string data = place().server.url(place().database());
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  env_["BATON_STORE"] = store();  // the locks are elsewhere
  EXPECT_EQ(baton({"fence", "install", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "check", "job", "9", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "check", "job", "5", "--database", data}).status.code, 0);
  place().server.sql("SELECT public.baton_fence('DEFAULT:job', 'X', 7)", place().database());
  EXPECT_EQ(baton({"fence", "check", "job", "6", "--database", data}).status.code, 77);
  EXPECT_EQ(baton({"fence", "rebase", "--database", data, "--json"}).out, "{\"floor\":7}\n");
}

TEST_F(CliPostgres, a_fence_that_is_not_there_says_what_to_do) {
  refuses({"fence", "check", "--key", "DEFAULT:job", "9", "--database",
           place().server.url(place().database())},
          1, "bad_store", "baton fence install");
}

// In text and in JSON at once, since both wait for the same end.
TEST_F(CliPostgres, when_the_server_is_stopped_the_command_is_ended_and_the_lock_lost) {
  PostgresServer server;
  env_["BATON_STORE"] = server.url();
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  const std::string script = "echo $$ ready; while :; do sleep 0.05; done";
  auto text = hold("job", script, {"--ttl", "3s"});
  auto json = hold("other", script, {"--ttl", "3s", "--json"});
  server.stop();
  for (auto* process : {text.get(), json.get()}) {
    const pid_t command = std::atoi(process->out().c_str());
    ASSERT_GT(command, 0) << process->out();
    ends(*process, 76);
    EXPECT_EQ(::kill(command, 0), -1) << "it would still write";
  }
  EXPECT_EQ(text->err().rfind("baton: lost the lock job (", 0), 0U) << text->err();
  EXPECT_TRUE(text->err().ends_with("); the command was ended\n")) << text->err();
  EXPECT_EQ(json->err().rfind(R"({"error":{"code":"lost","message":"lost the lock other ()", 0), 0U)
      << json->err();
  refuses({"run", "job", "--", "true"}, 1, "unavailable", "127.0.0.1");
}

TEST_F(CliPostgres, the_program_of_the_readme_writes_its_report_once) {
  const auto report = [&] {
    auto made = options({});
    made.argv = {BATON_REPORT_EXAMPLE, "2026-11"};
    return run(made);
  };
  EXPECT_NE(report().err.find("baton store migrate"), std::string::npos);
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  ASSERT_EQ(baton({"fence", "install", "--database", env_["BATON_STORE"]}).status.code, 0);
  place().server.sql("CREATE TABLE report (month text PRIMARY KEY)", place().database());
  const auto first = report();
  EXPECT_EQ(first.out, "the report of 2026-11 is written\n") << first.err;
  EXPECT_EQ(report().status.code, 0) << "it is written already";
  EXPECT_EQ(place().server.sql("SELECT count(*) FROM report", place().database()), "1");
  // A newer holder has been there.
  place().server.sql(
      "DELETE FROM report; SELECT baton_fence('DEFAULT:report:2026-11', 'X', 1000000)",
      place().database());
  const auto late = report();
  EXPECT_EQ(late.status.code, 1);
  EXPECT_EQ(place().server.sql("SELECT count(*) FROM report", place().database()), "0") << late.err;
}

// Last: it changes how the server lets people in.
TEST_F(CliPostgres, a_wrong_password_is_unauthorized_and_never_shown) {
  place().server.sql("CREATE USER visitor PASSWORD 'right'");
  const std::string file = place().server.sql("SHOW hba_file");
  const std::string path = file.substr(0, file.find('\n'));
  place().server.sql(
      "COPY (VALUES ('local all all trust'), ('host all postgres 127.0.0.1/32 trust'), "
      "('host all all 127.0.0.1/32 scram-sha-256')) TO '" +
      path + "'");
  place().server.sql("SELECT pg_reload_conf()");
  const std::string address =
      "127.0.0.1:" + std::to_string(place().server.port()) + "/" + place().database();
  env_["BATON_STORE"] = "postgres://visitor:wr0ng@" + address;
  // The server reads its files again when it gets to it.
  EXPECT_TRUE(poll_until([&] { return baton({"store", "status"}).status.code != 0; }));
  for (const Words& words : {Words{"lock", "find"}, Words{"store", "status"},
                             Words{"fence", "install", "--database", env_["BATON_STORE"]}}) {
    refuses(words, 1, "unauthorized", "visitor");
    refuses(words, 1, "unauthorized", address);
    EXPECT_EQ(baton(words).err.find("wr0ng"), std::string::npos);
  }
}

}  // namespace
}  // namespace baton::test
