#include "integration/cli_support.h"
#include "support/postgres_server.h"  // free_port
#include "support/redis_server.h"

namespace baton::test {
namespace {

class CliRedis : public CliTest {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<RedisServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    server_->ask({"FLUSHALL"});
    env_["BATON_STORE"] = server_->url();
  }

  static inline std::unique_ptr<RedisServer> server_;
};

TEST_F(CliRedis, run_excludes_and_loses_as_on_any_store) {
  EXPECT_EQ(baton({"--store", server_->socket_url(), "run", "job", "--", "true"}).status.code, 0);
  auto process = hold("job", "echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 75);
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "r"}).status.code, 0);
  ends(*process, 76);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"lock", "find"}).out, "no locks match\n");
}

TEST_F(CliRedis, a_policy_is_applied) {
  auto apply = start({"policy", "apply", "-"});
  apply->write("subjects: {job: {scope: predicate}}\n");
  apply->close_stdin();
  ends(*apply, 0);
  EXPECT_NE(baton({"policy", "show"}).out.find("scope: predicate"), std::string::npos);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliRedis, the_status_tells_of_the_server) {
  const auto status = baton({"store", "status"});
  EXPECT_EQ(status.status.code, 0) << status.err;
  EXPECT_NE(status.out.find("noeviction"), std::string::npos) << status.out;
  EXPECT_NE(baton({"store", "migrate"}).out.find("already"), std::string::npos);
}

TEST_F(CliRedis, a_server_that_is_not_there_is_unavailable) {
  const std::string url = "redis://me:secret@127.0.0.1:" + std::to_string(free_port()) + "/0";
  env_["BATON_STORE"] = url;
  refuses({"lock", "find"}, 1, "unavailable", "127.0.0.1");
  refuses({"store", "status"}, 1, "unavailable", "127.0.0.1");
  refuses({"fence", "check", "--key", "DEFAULT:job", "1", "--database", url}, 1, "unavailable",
          "127.0.0.1");
}

TEST_F(CliRedis, tls_and_malformed_urls_are_refused_without_repeating_them) {
  for (const auto* url : {"redis://u:s3cret@h:port/0", "redis://u:s3c@ret@h/0",
                          "redis://u:s3c/ret@h/0", "redis://u:s3cret@h/0?x=y"}) {
    for (const Words& words :
         {Words{"lock", "find", "--store", url}, Words{"fence", "install", "--database", url}}) {
      const auto refused = baton(words);
      EXPECT_EQ(refused.status.code, 2) << refused.err;
      EXPECT_EQ(refused.err.find("s3c"), std::string::npos) << refused.err;
    }
  }
  const auto tls = baton({"lock", "find", "--store", "rediss://u:s3cret@h/0"});
  EXPECT_NE(tls.status.code, 0);
  EXPECT_NE(tls.err.find("TLS"), std::string::npos) << tls.err;
  EXPECT_EQ(tls.err.find("s3cret"), std::string::npos) << tls.err;
}

TEST_F(CliRedis, a_token_is_checked_against_the_fence) {
  const std::string data = server_->url();
  env_["BATON_STORE"] = store();  // the locks are elsewhere
  EXPECT_EQ(baton({"fence", "install", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "check", "job", "9", "--database", data}).status.code, 0);
  EXPECT_EQ(baton({"fence", "check", "job", "5", "--database", data}).status.code, 0);
  server_->ask({"HSET", "baton_fence:DEFAULT:job", "X", "7"});
  EXPECT_EQ(baton({"fence", "check", "job", "6", "--database", data}).status.code, 77);
  EXPECT_EQ(baton({"fence", "rebase", "--database", data, "--json"}).out, "{\"floor\":7}\n");
}

}  // namespace
}  // namespace baton::test
