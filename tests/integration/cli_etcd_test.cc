#include "integration/cli_support.h"
#include "support/etcd_server.h"
#include "support/postgres_server.h"

namespace baton::test {
namespace {

class CliEtcd : public CliTest {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<EtcdServer>(); }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override { env_["BATON_STORE"] = server_->url("/cli-" + std::to_string(++tests_)); }

  static inline std::unique_ptr<EtcdServer> server_;
  static inline int tests_ = 0;
};

TEST_F(CliEtcd, run_excludes_and_loses_as_on_any_store) {
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"run", "job", "--", "sh", "-c", "exit 3"}).status.code, 3);
  auto process = hold("job", "echo ready; while :; do sleep 0.05; done");
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 75);
  EXPECT_NE(baton({"lock", "find"}).out.find("job"), std::string::npos);
  EXPECT_EQ(baton({"lock", "break", "job", "--reason", "r"}).status.code, 0);
  ends(*process, 76);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
  EXPECT_EQ(baton({"lock", "find"}).out, "no locks match\n");
}

TEST_F(CliEtcd, a_policy_is_applied) {
  auto apply = start({"policy", "apply", "-"});
  apply->write("subjects: {job: {scope: predicate}}\n");
  apply->close_stdin();
  ends(*apply, 0);
  EXPECT_NE(baton({"policy", "show"}).out.find("scope: predicate"), std::string::npos);
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

TEST_F(CliEtcd, the_store_is_shown_and_needs_no_schema) {
  const auto status = baton({"store", "status"});
  EXPECT_EQ(status.status.code, 0) << status.err;
  EXPECT_NE(status.out.find("etcd 3"), std::string::npos) << status.out;
  EXPECT_EQ(baton({"store", "migrate"}).status.code, 0);
}

TEST_F(CliEtcd, a_server_that_is_not_there_is_unavailable) {
  env_["BATON_STORE"] = "etcd://me:secret@127.0.0.1:" + std::to_string(free_port());
  refuses({"lock", "find"}, 1, "unavailable", "127.0.0.1");
  refuses({"store", "status"}, 1, "unavailable", "127.0.0.1");
}

}  // namespace
}  // namespace baton::test
