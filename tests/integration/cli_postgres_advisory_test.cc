#include "integration/cli_support.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

class CliPostgresAdvisory : public CliTest {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<PostgresServer>(); }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    const std::string database = "cli_" + std::to_string(++databases_);
    server_->sql("CREATE DATABASE " + database);
    const std::string url = server_->url(database);
    env_["BATON_STORE"] = "postgres-advisory" + url.substr(url.find(':'));
    ASSERT_EQ(baton({"store", "migrate"}).status.code, 0);
  }

  static inline std::unique_ptr<PostgresServer> server_;
  static inline int databases_ = 0;
};

TEST_F(CliPostgresAdvisory, run_excludes_and_loses_as_on_any_store) {
  auto process = hold("job", "echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 75);
  const auto found = baton({"lock", "find"});
  EXPECT_NE(found.out.find("job"), std::string::npos) << found.out;
  EXPECT_NE(found.out.find(std::to_string(process->pid())), std::string::npos) << found.out;
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "r"}).status.code, 0);
  ends(*process, 76);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliPostgresAdvisory, a_killed_runner_is_followed_by_the_one_that_waits) {
  auto first = hold("job", "echo ready; exec sleep 600", {"--ttl", "10m"});
  auto second = start({"run", "job", "--wait", "1m", "--", "echo", "mine"});
  ASSERT_TRUE(poll_until([&] {
    return baton({"lock", "show", "job", "--json"}).out.find("\"waiting\":1") != std::string::npos;
  }));
  first->kill(SIGKILL);
  ends(*second, 0);
  EXPECT_EQ(second->out(), "mine\n");
}

TEST_F(CliPostgresAdvisory, what_the_store_cannot_do_is_said) {
  refuses({"run", "job", "--mode", "update", "--", "true"}, 1, "unsupported", "no mode");
}

TEST_F(CliPostgresAdvisory, the_doctor_says_what_is_wrong_and_exits_with_1) {
  const auto well = baton({"store", "doctor", "--ttl", "1h"});
  EXPECT_EQ(well.status.code, 0) << well.out << well.err;
  server_->sql("ALTER DATABASE cli_" + std::to_string(databases_) +
               " SET synchronous_commit = off");
  const auto ill = baton({"store", "doctor", "--ttl", "1h"});
  EXPECT_EQ(ill.status.code, 1);
  EXPECT_NE(ill.out.find("warning: synchronous_commit is off"), std::string::npos) << ill.out;
  EXPECT_NE(ill.out.find("  cost: "), std::string::npos) << ill.out;
  EXPECT_NE(ill.out.find("  mend: "), std::string::npos) << ill.out;
  const auto json = baton({"store", "doctor", "--ttl", "1h", "--json"});
  EXPECT_EQ(json.status.code, 1);
  EXPECT_NE(json.out.find(R"("code":"commit-not-durable","severity":"warning")"), std::string::npos)
      << json.out;
  refuses({"store", "doctor", "--ttl", "soon"}, 2, "bad_request", "--ttl");
}

TEST_F(CliPostgresAdvisory, a_policy_is_applied) {
  auto apply = start({"policy", "apply", "-"});
  apply->write("subjects: {job: {scope: predicate}}\n");
  apply->close_stdin();
  ends(*apply, 0);
  EXPECT_NE(baton({"policy", "show"}).out.find("scope: predicate"), std::string::npos);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

}  // namespace
}  // namespace baton::test
