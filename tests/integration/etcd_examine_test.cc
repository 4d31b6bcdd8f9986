// What the doctor finds wrong with etcd clusters that are wrong.

#include <gtest/gtest.h>

#include "baton/etcd_store.h"
#include "conformance/harness.h"
#include "integration/examine_support.h"
#include "store/etcd/examine.h"
#include "support/etcd_server.h"
#include "support/fault_proxy.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

Codes codes(const std::string& url, Millis ttl = 1h) {
  return codes_found(*open_etcd_admin(url, soon()).value(), ttl);
}

TEST(EtcdExamine, a_sound_cluster_has_nothing_until_a_member_is_down) {
  EtcdServer cluster({.members = 3});
  // That depends on which etcd this machine has.
  const std::string status = cluster.post(0, "/v3/maintenance/status", "{}");
  const auto begin = status.find(R"("version":")") + 11;
  const std::string version = status.substr(begin, status.find('"', begin) - begin);
  const auto with_version = [&](Codes more) {
    if (store::etcd::revokes_live_leases(version)) more.emplace_back("stale-leader-revokes");
    std::sort(more.begin(), more.end());
    return more;
  };
  EXPECT_EQ(codes(cluster.url()), with_version({}));
  EXPECT_EQ(codes("etcd://" + cluster.endpoint(0)), with_version({"unnamed-members"}));
  EXPECT_EQ(codes(cluster.url(), Millis(0)), with_version({"slow"}));
  cluster.stop(2);
  EXPECT_TRUE(poll_until([&] { return codes(cluster.url()) == with_version({"member-down"}); }));
}

TEST(EtcdExamine, versions_whose_stale_leaders_revoke_leases_are_known) {
  for (const char* old : {"3.3.27", "3.4.0", "3.4.23", "3.4.30", "3.5.0", "3.5.12"}) {
    EXPECT_TRUE(store::etcd::revokes_live_leases(old)) << old;
  }
  for (const char* mended : {"3.4.31", "3.4.37", "3.5.13", "3.5.21", "3.6.0", "4.0.0", "", "x"}) {
    EXPECT_FALSE(store::etcd::revokes_live_leases(mended)) << mended;
  }
}

// Each answer takes less than the patience with a member, all of them together more.
TEST(EtcdExamine, a_slow_member_is_up_and_tells_its_version) {
  EtcdServer cluster({.members = 3});
  const std::string one = "etcd://" + cluster.endpoint(0);
  const Codes quick = codes(one);
  FaultProxy line(std::stoi(one.substr(one.rfind(':') + 1)));
  line.delay(400ms);
  const std::string slow = "etcd://127.0.0.1:" + std::to_string(line.port());
  EXPECT_TRUE(poll_until([&] { return codes(slow) == quick; }, 2 * patience));
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
