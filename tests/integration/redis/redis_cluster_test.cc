// A Redis Cluster of three masters: a region lives in one slot, and its requests find it.

#include <array>

#include "baton/locks.h"
#include "integration/redis/redis_support.h"
#include "store/redis/layout.h"
#include "support/postgres_server.h"  // free_port

namespace baton::test {
namespace {

class RedisCluster : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::vector<std::string> argv{"redis-cli", "--cluster", "create"};
    for (auto& node : nodes_) {
      node = std::make_unique<RedisServer>(
          RedisOptions{.settings = {{"cluster-enabled", "yes"},
                                    {"cluster-port", std::to_string(free_port())},
                                    {"cluster-node-timeout", "60000"}}});
      argv.push_back(node->address());
    }
    argv.insert(argv.end(), {"--cluster-yes"});
    const Finished made = run({.argv = argv});
    ASSERT_TRUE(made.status.success()) << made.out << made.err;
    for (auto& node : nodes_) {
      ASSERT_TRUE(poll_until([&] {
        return node->ask({"CLUSTER", "INFO"}).find("cluster_state:ok") != std::string::npos;
      }));
    }
  }
  static void TearDownTestSuite() {
    for (auto& node : nodes_) node.reset();
  }
  void SetUp() override {
    for (auto& node : nodes_) node->ask({"FLUSHALL"});
  }

  static inline std::array<std::unique_ptr<RedisServer>, 3> nodes_;
};

TEST_F(RedisCluster, slots_are_the_servers_own) {
  for (const std::string key : {"{baton:DEFAULT}:job", "foo", "{}foo", "a{b}c{d}", "{ü}"}) {
    EXPECT_EQ(nodes_[0]->ask({"CLUSTER", "KEYSLOT", key}),
              std::to_string(store::redis::slot_of(key)))
        << key;
  }
}

TEST_F(RedisCluster, every_region_is_found_from_every_node_alone_and_in_a_batch) {
  std::vector<std::string> regions;
  for (int i = 0; i < 12; ++i) regions.push_back("R" + std::to_string(i));
  std::uint64_t grant = 0;
  for (const auto& node : nodes_) {
    const auto store = open_redis(node->url());
    std::vector<Request> batch;
    for (const auto& region : regions) {
      ++grant;
      EXPECT_EQ(take(*store, grant, region + ":alone").outcome, Outcome::granted);
      EXPECT_EQ(end(*store, grant, region + ":alone").outcome, Outcome::done);
      batch.push_back(request(Verb::acquire, 1000 + grant, region + ":batch"));
      batch.push_back(request(Verb::acquire, 2000 + grant, region + ":batch"));
    }
    const auto replies = store->apply(batch, soon());
    ASSERT_TRUE(replies) << replies.error().message;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const bool first = node == nodes_[0] && i % 2 == 0;
      EXPECT_EQ(replies->at(i).outcome, first ? Outcome::granted : Outcome::busy) << i;
    }
    EXPECT_EQ(store->find({}, soon()).value().items.size(), regions.size());
  }
  std::size_t used = 0;
  for (const auto& node : nodes_) used += node->ask({"DBSIZE"}) == "0" ? 0 : 1;
  EXPECT_GT(used, 1U);
}

TEST_F(RedisCluster, a_waiter_is_woken_from_whichever_node_has_the_name) {
  auto here = open(nodes_[0]->url(), {.owner = "here"}).value();
  auto there = open(nodes_[1]->url(), {.owner = "there"}).value();
  for (const std::string region : {"R1", "R2", "R3", "R4"}) {
    const LockName name{.subject = "job", .region = region};
    auto lease = here.acquire(name, {.ttl = 20s});
    ASSERT_TRUE(lease) << lease.error().message;
    std::thread releasing([&] {
      poll_until([&] { return here.get(name).value().waiting == 1; });
      (void)lease->release();
    });
    const auto next = there.acquire(name, {.ttl = 20s, .wait = 60s});
    releasing.join();
    EXPECT_TRUE(next) << next.error().message;
  }
}

TEST_F(RedisCluster, names_of_several_regions_cannot_be_taken_together) {
  const auto store = open_redis(nodes_[0]->url());
  Request both = request(Verb::acquire, 1, "R1:job");
  both.targets.push_back({"R2:job", Mode::X});
  EXPECT_EQ(apply(*store, both).outcome, Outcome::unsupported);
  EXPECT_EQ(take(*store, 2, "R1:job").outcome, Outcome::granted) << "none of it was taken";
  Request set = request(Verb::acquire, 3, "R2:job");
  set.targets.push_back({"R2:other", Mode::X});
  EXPECT_EQ(apply(*store, set).outcome, Outcome::granted);
}

TEST_F(RedisCluster, a_policy_is_refused_and_its_versions_too) {
  const auto store = open_redis(nodes_[0]->url());
  Request schema = request(Verb::acquire, 1, std::string(core::kSchemaKey));
  schema.change.ordinal = 1;
  EXPECT_EQ(apply(*store, schema).outcome, Outcome::unsupported);
  Request versioned = request(Verb::acquire, 2, kJob);
  versioned.schema_version = 1;
  EXPECT_EQ(apply(*store, versioned).outcome, Outcome::denied);
}

TEST_F(RedisCluster, a_slot_that_moves_takes_its_locks_along) {
  const auto store = open_redis(nodes_[0]->url());
  take(*store, 1);
  const std::string slot = std::to_string(store::redis::slot_of(kJobKey));
  const auto id = [](RedisServer& node) { return node.ask({"CLUSTER", "MYID"}); };
  const auto owner = std::find_if(nodes_.begin(), nodes_.end(),
                                  [](const auto& node) { return node->ask({"DBSIZE"}) != "0"; });
  ASSERT_NE(owner, nodes_.end());
  RedisServer& from = **owner;
  RedisServer& to = owner == nodes_.begin() ? *nodes_[1] : *nodes_[0];
  to.ask({"CLUSTER", "SETSLOT", slot, "IMPORTING", id(from)});
  from.ask({"CLUSTER", "SETSLOT", slot, "MIGRATING", id(to)});
  for (const std::string& key : {kJobKey, std::string("{baton:DEFAULT}#last")}) {
    from.ask({"MIGRATE", "127.0.0.1", std::to_string(to.port()), key, "0", "5000"});
  }
  // Half-way: who asks at the old place is sent on, once.
  EXPECT_EQ(take(*store, 2).outcome, Outcome::busy);
  for (auto& node : nodes_) node->ask({"CLUSTER", "SETSLOT", slot, "NODE", id(to)});
  EXPECT_EQ(take(*store, 3).outcome, Outcome::busy);
  EXPECT_EQ(end(*store, 1).outcome, Outcome::done);
  EXPECT_EQ(take(*store, 4).outcome, Outcome::granted);
}

}  // namespace
}  // namespace baton::test
