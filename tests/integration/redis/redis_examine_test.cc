// What the doctor finds wrong with Redis servers that are wrong.

#include "baton/store_admin.h"
#include "integration/postgres/examine_support.h"
#include "integration/redis/redis_support.h"
#include "store/common/findings.h"
#include "support/certificates.h"
#include "support/fault_proxy.h"
#include "support/postgres_server.h"  // free_port
#include "support/wait.h"

namespace baton::test {
namespace {

Codes codes(const std::string& url) {
  return codes_found(*open_redis_admin(url, soon()).value(), 1h);
}

const std::map<std::string, std::string> kSound = {{"appendonly", "yes"},
                                                   {"appendfsync", "always"}};

std::map<std::string, std::string> sound_but(const std::string& name, const std::string& value) {
  auto settings = kSound;
  settings[name] = value;
  return settings;
}

TEST(RedisExamine, a_sound_server_has_nothing) {
  RedisServer server({.settings = kSound});
  EXPECT_EQ(codes(server.url()), Codes{});
}

TEST(RedisExamine, what_a_crash_would_forget) {
  RedisServer forgetful;
  EXPECT_EQ(codes(forgetful.url()), Codes{"no-append-only-file"});
  RedisServer late({.settings = sound_but("appendfsync", "everysec")});
  EXPECT_EQ(codes(late.url()), Codes{"late-flush"});
}

TEST(RedisExamine, what_full_memory_would_forget) {
  auto settings = sound_but("maxmemory-policy", "allkeys-lru");
  RedisServer unlimited({.settings = settings});
  EXPECT_EQ(codes(unlimited.url()), Codes{"eviction"});
  settings["maxmemory"] = "100mb";
  RedisServer limited({.settings = settings});
  const auto findings = open_redis_admin(limited.url(), soon()).value()->examine(1h, soon());
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_EQ(findings->front().severity, Severity::danger);
}

TEST(RedisExamine, what_a_failover_would_forget) {
  RedisServer master({.settings = kSound});
  RedisServer replica(
      {.settings = sound_but("replicaof", "127.0.0.1 " + std::to_string(master.port()))});
  ASSERT_TRUE(poll_until([&] {
    return master.ask({"INFO", "replication"}).find("connected_slaves:1") != std::string::npos;
  }));
  EXPECT_EQ(codes(master.url()), Codes{"asynchronous-replica"});
  EXPECT_EQ(codes(master.url("wait_replicas=1")), Codes{});
  EXPECT_EQ(codes(master.url("wait_replicas=2")), Codes{"too-few-replicas"});
  EXPECT_EQ(codes(replica.url()), Codes{"read-only-replica"});
}

TEST(RedisExamine, a_way_that_is_slow_for_the_ttl) {
  RedisServer server({.settings = kSound});
  FaultProxy proxy(server.port());
  const std::string url = "redis://127.0.0.1:" + std::to_string(proxy.port());
  EXPECT_EQ(codes(url), Codes{});
  proxy.delay(50ms);  // each way
  expect_by_ttl(*open_redis_admin(url, soon()).value(), "slow");
}

TEST(RedisExamine, a_server_that_refuses_to_write) {
  RedisServer server({.settings = kSound});
  server.ask({"ACL", "SETUSER", "reader", "on", ">pw", "~*", "&*", "+@all", "-set"});
  EXPECT_EQ(codes("redis://reader:pw@" + server.address()), Codes{"not-writable"});
  EXPECT_EQ(codes(server.url()), Codes{});
  server.ask({"CONFIG", "SET", "maxmemory", "1"});
  EXPECT_EQ(codes(server.url()), Codes{"memory-full"});
}

TEST(RedisExamine, a_password_that_goes_over_the_network_as_it_is) {
  auto settings = sound_but("requirepass", "s3cret");
  settings["bind"] = "0.0.0.0";
  RedisServer server({.settings = settings});
  const std::string port = std::to_string(server.port());
  EXPECT_EQ(codes("redis://:s3cret@127.0.0.1:" + port), Codes{});
  EXPECT_EQ(codes("redis://:s3cret@localhost:" + port), Codes{});
  // This machine by a name that says nothing of it.
  EXPECT_EQ(codes("redis://:s3cret@0.0.0.0:" + port), Codes{"password-in-clear"});
}

TEST(RedisExamine, a_server_that_nobody_checks_is_a_danger) {
  const Certificates files;
  files.sign("server", "subjectAltName=IP:127.0.0.1");
  const std::string port = std::to_string(free_port());
  auto settings = sound_but("tls-port", port);
  settings["tls-cert-file"] = files.file("server.pem");
  settings["tls-key-file"] = files.file("server.key");
  settings["tls-auth-clients"] = "no";
  settings["tls-ca-cert-file"] = files.file("ca.pem");
  RedisServer server({.settings = settings});
  const std::string url = "rediss://127.0.0.1:" + port;
  EXPECT_EQ(codes(url + "?ca=" + files.file("ca.pem")), Codes{});
  EXPECT_EQ(codes(url + "?verify=no"), Codes{"tls-unverified"});
}

TEST(RedisExamine, clocks_that_are_apart) {
  RedisServer server({.settings = kSound});
  for (const auto& [off, word] : {std::pair{-1h, "ahead"}, {1h, "behind"}}) {
    const auto ours = [off = off] { return store::wall_clock() + off; };
    const auto admin = store::open_redis_admin(server.url(), ours).value();
    ASSERT_EQ(codes_found(*admin, 1h), Codes{"clock"});
    const Finding found = admin->examine(1h, soon())->front();
    EXPECT_EQ(found.severity, Severity::warning);
    EXPECT_NE(found.what.find(word), std::string::npos) << found.what;
  }
}

TEST(RedisExamine, what_may_not_be_seen_is_said) {
  RedisServer server({.settings = kSound});
  server.ask({"ACL", "SETUSER", "baton", "on", ">pw", "~*", "&*", "+@all", "-info", "-config"});
  const auto found = codes("redis://baton:pw@" + server.address());
  EXPECT_EQ(found, Codes{"not-visible"});
}

}  // namespace
}  // namespace baton::test
