#include "integration/cli_any_store.h"
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

}  // namespace
}  // namespace baton::test
