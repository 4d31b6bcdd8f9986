#include <cstdlib>

#include "integration/cli_support.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

// A server of its own: these tests create databases and users, and change how it asks for
// passwords.
class CliPostgres : public CliTest {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<PostgresServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    database_ = "cli_" + std::to_string(++databases_);
    server_->sql("CREATE DATABASE " + database_);
    env_["BATON_STORE"] = server_->url(database_);
  }

  static inline std::unique_ptr<PostgresServer> server_;
  static inline int databases_ = 0;
  std::string database_;
};

TEST_F(CliPostgres, a_database_without_the_schema_says_what_to_do) {
  refuses({"lock", "find"}, 1, "bad_store", "baton store migrate");
  EXPECT_NE(baton({"store", "status"}).out.find("none; run 'baton store migrate'"),
            std::string::npos);
  EXPECT_EQ(baton({"store", "migrate"}).status.code, 0);
  EXPECT_NE(baton({"store", "migrate"}).out.find("already"), std::string::npos);
  EXPECT_EQ(baton({"lock", "find"}).out, "no locks match\n");
}

TEST_F(CliPostgres, run_excludes_and_loses_as_on_any_store) {
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  auto process = hold("job", "echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 75);
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "r"}).status.code, 0);
  ends(*process, 76);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliPostgres, a_policy_is_applied) {
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  auto apply = start({"policy", "apply", "-"});
  apply->write("subjects: {job: {scope: predicate}}\n");
  apply->close_stdin();
  ends(*apply, 0);
  EXPECT_NE(baton({"policy", "show"}).out.find("scope: predicate"), std::string::npos);
}

TEST_F(CliPostgres, a_server_that_is_not_there_is_unavailable) {
  const std::string url =
      "postgres://me:secret@127.0.0.1:" + std::to_string(free_port()) + "/" + database_;
  env_["BATON_STORE"] = url;
  refuses({"lock", "find"}, 1, "unavailable", "127.0.0.1");
  refuses({"store", "status"}, 1, "unavailable", "127.0.0.1");
  refuses({"fence", "check", "--key", "DEFAULT:job", "1", "--database", url}, 1, "unavailable",
          "127.0.0.1");
}

TEST_F(CliPostgres, a_malformed_url_is_refused_without_repeating_it) {
  for (const auto* url :
       {"postgres://u:s3cret@h:port/x", "postgres://u:s3cret@h/x?nonsense=1",
        "postgres://u:s3c@ret@h/x", "postgres://u:s3c/ret@h/x", "postgres://u:s3cret@[::1/x"}) {
    for (const Words& words :
         {Words{"lock", "find", "--store", url}, Words{"fence", "install", "--database", url}}) {
      const auto refused = baton(words);
      EXPECT_EQ(refused.status.code, 2) << refused.err;
      EXPECT_EQ(refused.err.find("s3c"), std::string::npos) << refused.err;
      EXPECT_EQ(refused.err.find('\n'), refused.err.size() - 1) << refused.err;
    }
  }
}

TEST_F(CliPostgres, a_schema_of_a_newer_baton_is_refused) {
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  server_->sql("UPDATE baton.meta SET version = 99", database_);
  refuses({"lock", "find"}, 1, "bad_store", "newer");
}

TEST_F(CliPostgres, a_token_is_checked_against_the_fence) {
  const std::string data = server_->url(database_);
  ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  env_["BATON_STORE"] = store();  // the locks are elsewhere
  EXPECT_EQ(baton({"fence", "install", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "check", "job", "9", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "check", "job", "5", "--database", data}).status.code, 0);
  server_->sql("SELECT public.baton_fence('DEFAULT:job', 'X', 7)", database_);
  EXPECT_EQ(baton({"fence", "check", "job", "6", "--database", data}).status.code, 77);
  EXPECT_EQ(baton({"fence", "rebase", "--database", data, "--json"}).out, "{\"floor\":7}\n");
}

TEST_F(CliPostgres, a_fence_that_is_not_there_says_what_to_do) {
  refuses({"fence", "check", "--key", "DEFAULT:job", "9", "--database", server_->url(database_)}, 1,
          "bad_store", "baton fence install");
}

// Last: it changes how the server lets people in.
TEST_F(CliPostgres, a_wrong_password_is_unauthorized_and_never_shown) {
  server_->sql("CREATE USER visitor PASSWORD 'right'");
  const std::string file = server_->sql("SHOW hba_file");
  const std::string path = file.substr(0, file.find('\n'));
  server_->sql(
      "COPY (VALUES ('local all all trust'), ('host all postgres 127.0.0.1/32 trust'), "
      "('host all all 127.0.0.1/32 scram-sha-256')) TO '" +
      path + "'");
  server_->sql("SELECT pg_reload_conf()");
  const std::string address = "127.0.0.1:" + std::to_string(server_->port()) + "/" + database_;
  env_["BATON_STORE"] = "postgres://visitor:wr0ng@" + address;
  // The server reads its files again when it gets to it.
  EXPECT_TRUE(poll_until([&] { return baton({"store", "status"}).status.code != 0; }));
  for (const Words& words : {Words{"lock", "find"}, Words{"store", "status"},
                             Words{"fence", "install", "--database", env_["BATON_STORE"]}}) {
    refuses(words, 1, "unauthorized", "visitor");
    EXPECT_EQ(baton(words).err.find("wr0ng"), std::string::npos);
  }
}

}  // namespace
}  // namespace baton::test
