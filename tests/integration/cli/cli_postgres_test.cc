#include <cstdlib>

#include "integration/cli/cli_any_store.h"
#include "support/fault_proxy.h"
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

TEST_F(CliPostgres, functions_of_an_older_baton_are_told_of_and_replaced) {
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  EXPECT_NE(baton({"store", "status"}).out.find("as this baton wants"), std::string::npos);
  place().server.sql("COMMENT ON TABLE baton.meta IS 'functions 1 1'", place().database());
  const auto status = baton({"store", "status"}).out;
  EXPECT_NE(status.find("the functions in the schema are older than this baton; run 'baton store "
                        "migrate'"),
            std::string::npos)
      << status;
  EXPECT_NE(baton({"store", "status", "--json"}).out.find("\"schema_current\":false"),
            std::string::npos);
  const auto migrated = baton({"store", "migrate"}).out;
  EXPECT_NE(migrated.find("replaced the functions"), std::string::npos) << migrated;
  EXPECT_NE(baton({"store", "status", "--json"}).out.find("\"schema_current\":true"),
            std::string::npos);
  EXPECT_NE(baton({"store", "migrate"}).out.find("already"), std::string::npos);
}

// Both at once, since both wait for as long.
TEST_F(CliPostgres, a_server_that_stops_answering_does_not_hold_up_the_fence_for_ever) {
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  FaultProxy install_proxy(place().server.port());
  FaultProxy rebase_proxy(place().server.port());
  install_proxy.hold("CREATE SCHEMA");
  rebase_proxy.hold("baton_fence.seen");
  const auto through = [&](const FaultProxy& proxy) {
    return "postgres://postgres@127.0.0.1:" + std::to_string(proxy.port()) + "/" +
           place().database();
  };
  auto install = start({"fence", "install", "--database", through(install_proxy)});
  auto rebase = start({"fence", "rebase", "--database", through(rebase_proxy)});
  for (auto* process : {install.get(), rebase.get()}) {
    ends(*process, 1);
    EXPECT_NE(process->err().find("no answer in time"), std::string::npos) << process->err();
  }
}

TEST_F(CliPostgres, who_may_not_use_or_make_a_fence_is_told_what_an_administrator_can_run) {
  auto& server = place().server;
  const std::string role = "guest_" + place().database();
  server.sql("CREATE USER " + role);
  const std::string url = "postgres://" + role + "@127.0.0.1:" + std::to_string(server.port()) +
                          "/" + place().database();
  refuses({"fence", "install", "--database", url}, 1, "unauthorized",
          "GRANT CREATE ON DATABASE " + place().database() + " TO " + role + ";");
  refuses({"store", "migrate", "--store", url}, 1, "unauthorized",
          "GRANT CREATE ON DATABASE " + place().database() + " TO " + role + ";");
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  ASSERT_EQ(baton({"fence", "install", "--database", server.url(place().database())}).status.code,
            0);
  const Words check{"fence", "check", "--key", "DEFAULT:job", "9", "--database", url};
  refuses(check, 1, "unauthorized",
          "GRANT EXECUTE ON FUNCTION public.baton_fence(text), public.baton_fence(text, text, "
          "bigint) TO \"" +
              role + "\";");
  refuses({"fence", "rebase", "--database", url}, 1, "unauthorized",
          "GRANT USAGE ON SCHEMA baton_fence TO " + role + ";");
  server.sql(
      "GRANT EXECUTE ON FUNCTION public.baton_fence(text), public.baton_fence(text, text, bigint) "
      "TO " +
          role,
      place().database());
  EXPECT_EQ(baton(check).status.code, 0);
  server.sql("ALTER ROLE " + role + " SET default_transaction_read_only = on");
  refuses(check, 1, "unavailable",
          "ALTER ROLE " + role + " SET default_transaction_read_only = off;");
}

TEST_F(CliPostgres, a_server_that_cannot_be_used_is_told_with_the_remedy) {
  const std::string port = std::to_string(place().server.port());
  for (const bool fence : {false, true}) {
    const auto with = [&](const std::string& url) {
      return fence ? Words{"fence", "install", "--database", url}
                   : Words{"lock", "find", "--store", url};
    };
    refuses(with(place().absent()), 1, "unavailable", "start the server, or correct host and port");
    refuses(with("postgres://nobody.invalid/x"), 1, "unavailable", "correct the host in the URL");
    refuses(with("postgres://postgres@127.0.0.1:" + port + "/missing"), 1, "bad_store",
            "createdb missing");
    refuses(with("postgres://stranger@127.0.0.1:" + port + "/postgres"), 1, "unauthorized",
            "createuser stranger");
    refuses(with("postgres://me:***@127.0.0.1:" + port + "/postgres"), 2, "bad_url",
            "put the real one there");
  }
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
    refuses(words, 1, "unauthorized", "correct user and password in the URL");
    EXPECT_EQ(baton(words).err.find("wr0ng"), std::string::npos);
  }
}

}  // namespace
}  // namespace baton::test
