// What the doctor finds wrong with etcd clusters that are wrong.

#include <gtest/gtest.h>

#include "baton/etcd_store.h"
#include "conformance/harness.h"
#include "integration/examine_support.h"
#include "support/etcd_server.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

Codes codes(const std::string& url, Millis ttl = 1h) {
  return codes_found(*open_etcd_admin(url, soon()).value(), ttl);
}

TEST(EtcdExamine, a_sound_cluster_has_nothing_until_a_member_is_down) {
  EtcdServer cluster({.members = 3});
  EXPECT_EQ(codes(cluster.url()), Codes{});
  EXPECT_EQ(codes("etcd://" + cluster.endpoint(0)), Codes{"unnamed-members"});
  EXPECT_EQ(codes(cluster.url(), Millis(0)), Codes{"slow"});
  cluster.stop(2);
  EXPECT_TRUE(poll_until([&] { return codes(cluster.url()) == Codes{"member-down"}; }));
}

TEST(EtcdExamine, one_member_is_no_majority) {
  EtcdServer alone;
  EXPECT_EQ(codes(alone.url()), Codes{"no-majority-to-lose"});
}

TEST(EtcdExamine, a_used_up_quota_is_a_danger) {
  EtcdServer full({.arguments = {"--quota-backend-bytes=65536"}});
  const std::string value(65'536, 'A');
  ASSERT_TRUE(poll_until([&] {
    (void)full.post(0, "/v3/kv/put", R"({"key":"eA==","value":")" + value + R"("})");
    return full.post(0, "/v3/maintenance/alarm", R"({"action":"GET"})").find("NOSPACE") !=
           std::string::npos;
  }));
  EXPECT_EQ(codes(full.url()), (Codes{"no-majority-to-lose", "space-quota"}));
}

}  // namespace
}  // namespace baton::test
