// What an election promises, on whatever store the program was built for. The rest of an elector
// knows nothing of stores: tests/unit/election/.

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <thread>

#include "baton/elector.h"
#include "clients.h"

namespace baton::test {
namespace {

class Election : public Client {
 protected:
  const LockName name = election_lock("outbox").value();

  struct Candidate {
    std::shared_ptr<FlakyStore> line;
    LockClient locks;
    std::atomic<Token> term{0};
    std::atomic<int> terms{0};
    Elector elector;
  };

  std::unique_ptr<Candidate> stand(const std::string& node) {
    auto [line, locks] = replica(node);
    std::unique_ptr<Candidate> made(
        new Candidate{.line = line,
                      .locks = locks,
                      .elector = Elector(locks, "outbox", {.ttl = 10s, .clock = &clock})});
    Candidate& candidate = *made;
    EXPECT_TRUE(made->elector.start({.on_elected = [&candidate](Leadership& leadership) {
      candidate.term = leadership.term();
      ++candidate.terms;
    }}));
    return made;
  }
  std::unique_ptr<Candidate> leading(const std::string& node) {
    auto made = stand(node);
    EXPECT_TRUE(elected(*made));
    return made;
  }
  std::unique_ptr<Candidate> following(const std::string& node, std::size_t ahead) {
    auto made = stand(node);
    EXPECT_TRUE(eventually([&] { return waiting(made->locks) == ahead + 1; }));
    return made;
  }
  // Until it was told so: is_leader() is true already while on_elected has yet to be called.
  bool elected(const Candidate& candidate, int times = 1) {
    return eventually([&] { return candidate.terms == times; });
  }
  std::size_t waiting(LockClient& locks) { return locks.get(name).value().waiting; }

  // Slowly, for a leader must not be taken for dead because this machine is slow.
  template <typename Condition>
  bool eventually(Condition condition) {
    return Replicas::eventually(condition, 2ms);
  }
};

INSTANTIATE_TEST_SUITE_P(Wakeups, Election, ::testing::Bool(), wakeups_name);

TEST_P(Election, who_stops_is_followed_by_the_next_in_a_later_term) {
  auto a = leading("a");
  auto b = following("b", 0);
  a->elector.stop();
  EXPECT_TRUE(elected(*b));
  EXPECT_GT(b->term, a->term);
}

TEST_P(Election, who_resigns_stands_again_behind_the_others) {
  auto a = leading("a");
  auto b = following("b", 0);
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(elected(*b));
  EXPECT_TRUE(eventually([&] { return waiting(b->locks) == 1; }));
  EXPECT_EQ(a->terms, 1);
  EXPECT_GT(b->term, a->term);
}

TEST_P(Election, who_is_asked_to_resign_hands_over) {
  auto a = leading("a");
  auto b = following("b", 0);
  const auto asked = resign_leader(b->locks, name);
  ASSERT_TRUE(asked && *asked) << asked.error().message;
  EXPECT_EQ((*asked)->node, "a");
  EXPECT_TRUE(elected(*b));
  EXPECT_EQ(leader_of(b->locks, name).value()->node, "b");
}

TEST_P(Election, a_store_without_transfers_says_so_and_the_leader_stays) {
  if (store->capabilities().transfer) GTEST_SKIP() << "this store transfers";
  auto a = leading("a");
  auto b = following("b", 0);
  auto c = following("c", 1);
  EXPECT_EQ(transfer_leader(b->locks, name, "c").error().code, Code::unsupported);
  EXPECT_EQ(a->elector.transfer("c").error().code, Code::unsupported);
  EXPECT_TRUE(a->elector.is_leader());
}

TEST_P(Election, a_transfer_reaches_the_named_node_out_of_turn) {
  if (!store->capabilities().transfer) GTEST_SKIP() << "this store does not transfer";
  auto a = leading("a");
  auto b = following("b", 0);
  auto c = following("c", 1);
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

TEST_P(Election, a_leader_that_is_cut_off_is_told_and_followed) {
  auto a = leading("a");
  auto b = following("b", 0);
  a->line->set(Line::refuses);
  EXPECT_TRUE(Replicas::eventually([&] { return b->terms == 1; }));  // it shall be taken for dead
  EXPECT_FALSE(a->elector.is_leader());
  EXPECT_GT(b->term, a->term);
  a->line->set(Line::good);
}

}  // namespace
}  // namespace baton::test
