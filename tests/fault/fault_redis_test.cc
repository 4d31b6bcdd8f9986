// What only Redis has to survive, and what it does not.

#include "fault.h"

namespace baton::test {
namespace {

// The file is flushed before anybody is told of a grant, so nothing that was granted is forgotten.
TEST_F(Fault, a_server_that_crashes_under_load_breaks_no_promise) {
  survive(2s, 4, [&](int round) {
    round % 2 == 0 ? redis->crash() : redis->stop();
    redis->start();
  });
}

TEST_F(Fault, a_server_that_is_paused_under_load_breaks_no_promise) {
  survive(1s, 3, [&](int round) {
    // Longer than a lease lasts, and longer than a request may wait.
    ::kill(redis->pid(), SIGSTOP);
    std::this_thread::sleep_for(round == 2 ? 6s : 1500ms);
    ::kill(redis->pid(), SIGCONT);
  });
}

// An asynchronous failover forgets what the replica had not heard of: here everything since it was
// cut off. Two holders then believe at once; the tokens, which follow the clock, still tell who
// came later, and the fence stops the first one.
TEST(RedisFailover,
     a_promoted_replica_grants_again_what_it_never_heard_of_and_the_fence_sorts_it_out) {
  auto master = std::make_unique<RedisServer>();
  RedisServer replica({.settings = {{"replicaof", "127.0.0.1 " + std::to_string(master->port())},
                                    {"repl-diskless-sync-delay", "0"}}});
  auto before = open(master->url(), {.owner = "before"}).value();
  auto kept = before.acquire({.subject = "kept"}, {.ttl = 60s});
  ASSERT_TRUE(kept);
  ASSERT_TRUE(poll_until([&] { return replica.ask({"DBSIZE"}) == master->ask({"DBSIZE"}); }));
  replica.ask({"REPLICAOF", "NO", "ONE"});
  auto forgotten = before.acquire({.subject = "forgotten"}, {.ttl = 60s});
  ASSERT_TRUE(forgotten);
  master->crash();

  auto after = open(replica.url(), {.owner = "after"}).value();
  EXPECT_FALSE(after.try_acquire({.subject = "kept"})) << "what was replicated is still held";
  auto second = after.acquire({.subject = "forgotten"}, {.ttl = 60s});
  ASSERT_TRUE(second) << "lost with the master";
  EXPECT_TRUE(forgotten->valid()) << "and its first holder does not know";
  EXPECT_GT(second->token(), forgotten->token());

  sqlite3* data = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &data), SQLITE_OK);
  install_fence(data).value();
  sqlite3_exec(data, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
  EXPECT_TRUE(fence(data, *second));
  EXPECT_EQ(fence(data, *forgotten).error().code, Code::fenced);
  sqlite3_close(data);
}

// A master whose clock ran ahead has given tokens that the new one's clock has not reached: they
// regress. The fence then refuses the new holders, until the counter is lifted.
TEST(RedisFailover, tokens_that_regress_are_refused_until_they_are_rebased) {
  auto master = std::make_unique<RedisServer>();
  RedisServer replica({.settings = {{"replicaof", "127.0.0.1 " + std::to_string(master->port())},
                                    {"repl-diskless-sync-delay", "0"}}});
  ASSERT_TRUE(poll_until([&] {
    return replica.ask({"INFO", "replication"}).find("master_link_status:up") != std::string::npos;
  }));
  replica.ask({"REPLICAOF", "NO", "ONE"});
  master->ask({"SET", "{baton:DEFAULT}#last", "4000000000000000"});
  const auto old_token = open(master->url()).value().acquire({.subject = "job"})->token();
  master->crash();

  sqlite3* data = nullptr;
  ASSERT_EQ(sqlite3_open(":memory:", &data), SQLITE_OK);
  install_fence(data).value();
  const std::string key = "DEFAULT:job";
  sqlite3_exec(data, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
  ASSERT_TRUE(fence(data, key, Mode::X, old_token));
  auto after = open(replica.url()).value();
  {
    auto lower = after.acquire({.subject = "job"});
    ASSERT_TRUE(lower);
    EXPECT_LT(lower->token(), old_token);
    EXPECT_EQ(fence(data, *lower).error().code, Code::fenced) << "safe and useless";
  }
  const auto admin = open_admin(replica.url(), BootClock::now() + 30s).value();
  ASSERT_TRUE(admin->raise_tokens(highest_fenced(data).value(), BootClock::now() + 30s));
  auto higher = after.acquire({.subject = "job"});
  ASSERT_TRUE(higher);
  EXPECT_TRUE(fence(data, *higher));
  sqlite3_close(data);
}

}  // namespace
}  // namespace baton::test
