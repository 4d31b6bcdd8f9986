// What the doctor finds wrong with etcd clusters that are wrong.

#include <gtest/gtest.h>

#include "baton/etcd_store.h"
#include "conformance/harness.h"
#include "integration/postgres/examine_support.h"
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

TEST(EtcdExamine, members_that_disagree_are_a_danger) {
  const EtcdServer wrong;
  ASSERT_NE(wrong.post(0, "/v3/maintenance/alarm", R"({"action":"ACTIVATE","alarm":"CORRUPT"})")
                .find(" 200 "),
            std::string::npos);
  // Nothing can be written either, but not for lack of rights.
  EXPECT_EQ(codes(wrong.url()), (Codes{"corrupt", "no-majority-to-lose"}));
}

TEST(EtcdExamine, a_way_that_is_slow_for_the_ttl) {
  const EtcdServer server;
  FaultProxy proxy(server.port());
  const std::string url = "etcd://127.0.0.1:" + std::to_string(proxy.port());
  EXPECT_EQ(codes(url), Codes{"no-majority-to-lose"});
  proxy.delay(50ms);  // each way
  expect_by_ttl(*open_etcd_admin(url, soon()).value(), "slow");
}

TEST(EtcdExamine, what_the_user_may_not_write_and_a_password_that_all_can_read) {
  const EtcdServer server;
  const auto post = [&](const std::string& path, const std::string& body) {
    ASSERT_NE(server.post(0, path, body).find(" 200 "), std::string::npos) << path;
  };
  for (const std::string name : {"root", "reader"}) {
    post("/v3/auth/user/add", R"({"name":")" + name + R"(","password":"secret"})");
    post("/v3/auth/role/add", R"({"name":")" + name + R"("})");
    post("/v3/auth/user/grant", R"({"user":")" + name + R"(","role":")" + name + R"("})");
  }
  post("/v3/auth/role/grant",  // baton/ to baton0
       R"({"name":"reader","perm":{"permType":"READ","key":"YmF0b24v","range_end":"YmF0b24w"}})");
  post("/v3/auth/enable", "{}");
  const auto as = [&](const std::string& user, const std::string& host) {
    return codes("etcd://" + user + ":secret@" + host + ":" + std::to_string(server.port()));
  };
  EXPECT_EQ(as("root", "127.0.0.1"), Codes{"no-majority-to-lose"});
  EXPECT_EQ(as("reader", "127.0.0.1"), (Codes{"no-majority-to-lose", "not-writable"}));
  // This machine by a name that says nothing of it.
  EXPECT_EQ(as("root", "0.0.0.0"), (Codes{"no-majority-to-lose", "password-in-clear"}));
}

TEST(EtcdExamine, a_server_that_nobody_checks_is_a_danger) {
  const TempDir dir("tls");
  const std::string certificate = dir / "server.pem";
  const std::string key = dir / "server.key";
  const Finished made = run({.argv = {"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
                                      "-keyout", key, "-out", certificate, "-days", "2", "-subj",
                                      "/CN=etcd", "-addext", "subjectAltName=IP:127.0.0.1"}});
  ASSERT_TRUE(made.status.success()) << made.err;
  const EtcdServer server(
      {.arguments = {"--cert-file", certificate, "--key-file", key}, .scheme = "https"});
  EXPECT_EQ(codes(server.url("?ca=" + certificate)), Codes{"no-majority-to-lose"});
  EXPECT_EQ(codes(server.url("?verify=no")), (Codes{"no-majority-to-lose", "tls-unverified"}));
}

}  // namespace
}  // namespace baton::test
