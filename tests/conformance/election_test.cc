// What an election promises, on whatever store the program was built for. The rest of an elector
// knows nothing of stores: tests/unit/elector_test.cc.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "baton/elector.h"
#include "harness.h"
#include "manual_clock.h"
#include "support/flaky_store.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class Election : public ::testing::Test {
 protected:
  std::shared_ptr<ManualTime> time = std::make_shared<ManualTime>();
  ManualClock clock{time};
  std::shared_ptr<LockStore> store = factory().fresh(time);
  const LockName name = election_lock("outbox").value();

  struct Replica {
    std::shared_ptr<FlakyStore> line;
    LockClient locks;
    std::atomic<Token> term{0};
    std::atomic<int> terms{0};
    Elector elector;
  };

  std::unique_ptr<Replica> stand(const std::string& node) {
    auto line = std::make_shared<FlakyStore>(store);
    auto locks = LockClient::make(line, {.owner = node, .clock = &clock}).value();
    std::unique_ptr<Replica> made(
        new Replica{.line = line,
                    .locks = locks,
                    .elector = Elector(locks, "outbox", {.ttl = 10s, .clock = &clock})});
    Replica& replica = *made;
    EXPECT_TRUE(made->elector.start({.on_elected = [&replica](Leadership& leadership) {
      replica.term = leadership.term();
      ++replica.terms;
    }}));
    return made;
  }
  std::unique_ptr<Replica> leading(const std::string& node) {
    auto made = stand(node);
    EXPECT_TRUE(elected(*made));
    return made;
  }
  std::unique_ptr<Replica> following(const std::string& node, std::size_t ahead) {
    auto made = stand(node);
    EXPECT_TRUE(eventually([&] { return waiting(made->locks) == ahead + 1; }));
    return made;
  }
  // Until it was told so: is_leader() is true already while on_elected has yet to be called.
  bool elected(const Replica& replica, int times = 1) {
    return eventually([&] { return replica.terms == times; });
  }
  std::size_t waiting(LockClient& locks) { return locks.get(name).value().waiting; }

  // Lets time pass until it is so. Only liveness is tested with it, never a point in time.
  template <typename Condition>
  bool eventually(Condition condition) {
    return poll_until(
        [&] {
          if (condition()) return true;
          time->advance(2ms);
          return false;
        },
        60s, 1ms);
  }
};

TEST_F(Election, who_stops_is_followed_by_the_next_in_a_later_term) {
  auto a = leading("a");
  auto b = following("b", 0);
  a->elector.stop();
  EXPECT_TRUE(elected(*b));
  EXPECT_GT(b->term, a->term);
}

TEST_F(Election, who_resigns_stands_again_behind_the_others) {
  auto a = leading("a");
  auto b = following("b", 0);
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(elected(*b));
  EXPECT_TRUE(eventually([&] { return waiting(b->locks) == 1; }));
  EXPECT_EQ(a->terms, 1);
  EXPECT_GT(b->term, a->term);
}

TEST_F(Election, who_is_asked_to_resign_hands_over) {
  auto a = leading("a");
  auto b = following("b", 0);
  const auto asked = resign_leader(b->locks, name);
  ASSERT_TRUE(asked && *asked) << asked.error().message;
  EXPECT_EQ((*asked)->node, "a");
  EXPECT_TRUE(elected(*b));
  EXPECT_EQ(leader_of(b->locks, name).value()->node, "b");
}

TEST_F(Election, a_transfer_reaches_the_named_node_out_of_turn) {
  auto a = leading("a");
  auto b = following("b", 0);
  auto c = following("c", 1);
  if (!store->capabilities().transfer) {
    EXPECT_EQ(transfer_leader(b->locks, name, "c").error().code, Code::unsupported);
    EXPECT_EQ(a->elector.transfer("c").error().code, Code::unsupported);
    EXPECT_TRUE(a->elector.is_leader());
    return;
  }
  EXPECT_TRUE(a->elector.transfer("c"));
  EXPECT_TRUE(elected(*c));
  EXPECT_TRUE(eventually([&] { return waiting(c->locks) == 2; }));
  // The same, asked by somebody outside: the leader learns it as a revocation.
  const auto asked = transfer_leader(b->locks, name, "a");
  ASSERT_TRUE(asked && *asked) << asked.error().message;
  EXPECT_TRUE(elected(*a, 2));
  EXPECT_EQ(b->terms, 0);
  EXPECT_GT(a->term, c->term);
}

TEST_F(Election, a_leader_that_is_cut_off_is_told_and_followed) {
  auto a = leading("a");
  auto b = following("b", 0);
  a->line->set(FlakyStore::Line::refuses);
  EXPECT_TRUE(elected(*b));
  EXPECT_FALSE(a->elector.is_leader());
  EXPECT_GT(b->term, a->term);
  a->line->set(FlakyStore::Line::good);
}

}  // namespace
}  // namespace baton::test
