#include "integration/cli/cli_any_store.h"
#include "support/etcd_server.h"
#include "support/postgres_server.h"  // free_port

namespace baton::test {
namespace {

struct EtcdPlace {
  EtcdServer server;
  int tests = 0;
  std::string fresh() { return server.url("/cli-" + std::to_string(++tests)); }
  static std::string absent() {
    return "etcd://me:secret@127.0.0.1:" + std::to_string(free_port());
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Etcd, CliAnyStore, EtcdPlace);

using CliEtcd = CliAnyStore<EtcdPlace>;

TEST_F(CliEtcd, the_status_tells_of_the_server) {
  const auto status = baton({"store", "status"});
  EXPECT_NE(status.out.find("etcd 3"), std::string::npos) << status.out;
}

TEST_F(CliEtcd, a_malformed_url_is_refused_without_repeating_it) {
  for (const auto* url :
       {"etcd://u:s3cret@h:port/x", "etcd://u:s3c@ret@h/x", "etcd://u:s3c/ret@h/x",
        "etcd://u:s3cret@[::1/x", "etcd://u:s3cret@h?nonsense=1", "etcd://u:s3cret@a,,b"}) {
    const Words words{"lock", "find", "--store", url};
    refuses(words, 2, "bad_url", "");
    const auto told = baton(words).err;
    EXPECT_EQ(told.find("s3c"), std::string::npos) << told;
  }
}

TEST_F(CliEtcd, a_wrong_password_is_unauthorized_and_never_shown) {
  const EtcdServer closed;
  const auto post = [&](const std::string& path, const std::string& body) {
    const auto answer = closed.post(0, "/v3/auth/" + path, body);
    ASSERT_NE(answer.find(" 200 "), std::string::npos) << path << answer;
  };
  post("user/add", R"({"name":"root","password":"r1ght"})");
  post("role/add", R"({"name":"root"})");
  post("user/grant", R"({"user":"root","role":"root"})");
  post("enable", "{}");
  env_["BATON_STORE"] = "etcd://root:wr0ng@" + closed.endpoint();
  for (const Words& words :
       {Words{"run", "job", "--", "true"}, Words{"lock", "find"}, Words{"store", "status"}}) {
    refuses(words, 1, "unauthorized", "password");
    refuses(words, 1, "unauthorized", "(http://" + closed.endpoint() + ", user root)");
    EXPECT_EQ(baton(words).err.find("wr0ng"), std::string::npos);
  }
  env_["BATON_STORE"] = "etcd://root:r1ght@" + closed.endpoint();
  EXPECT_EQ(baton({"run", "job", "--", "true"}).status.code, 0);
}

}  // namespace
}  // namespace baton::test
