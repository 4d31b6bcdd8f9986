// Expiry without a clock in common.

#include "integration/kubernetes/kubernetes_support.h"

namespace baton::test {
namespace {

class KubernetesTime : public KubernetesTest {
 protected:
  std::shared_ptr<ManualTime> here = std::make_shared<ManualTime>();
  std::shared_ptr<ManualTime> there = std::make_shared<ManualTime>();
};

TEST_F(KubernetesTime, two_clients_whose_clocks_differ_agree_on_who_holds_it) {
  there->advance(std::chrono::hours(1000));
  auto holder = open_at(here);
  auto observer = open_at(there);
  ASSERT_EQ(outcome(*holder, acquire(1, kName)), Outcome::granted);
  EXPECT_EQ(outcome(*observer, acquire(2, kName)), Outcome::busy);
  there->advance(kTtl - Millis(1));
  here->advance(Millis(4'000));
  EXPECT_EQ(outcome(*observer, acquire(2, kName)), Outcome::busy);
  // A renewal makes the record another one, and the observer counts anew from when it sees it.
  EXPECT_EQ(outcome(*holder, same_targets(Verb::renew, acquire(1, kName))), Outcome::granted);
  EXPECT_EQ(outcome(*observer, acquire(2, kName)), Outcome::busy);
  there->advance(kTtl - Millis(1));
  EXPECT_EQ(outcome(*observer, acquire(2, kName)), Outcome::busy);
  there->advance(Millis(1));
  EXPECT_EQ(outcome(*observer, acquire(2, kName)), Outcome::granted);
  // Whatever its own clock says: it has lost it.
  EXPECT_EQ(outcome(*holder, same_targets(Verb::renew, acquire(1, kName))), Outcome::lost);
}

TEST_F(KubernetesTime, a_renewal_is_seen_also_by_one_that_believed_the_record_expired) {
  auto holder = open_at(here);
  auto observer = open_at(there);
  ASSERT_EQ(outcome(*holder, acquire(1, kName)), Outcome::granted);
  EXPECT_EQ(outcome(*observer, acquire(2, kName)), Outcome::busy);
  ASSERT_EQ(outcome(*holder, same_targets(Verb::renew, acquire(1, kName))), Outcome::granted);
  here->advance(Millis(10));
  ASSERT_EQ(outcome(*holder, same_targets(Verb::renew, acquire(1, kName))), Outcome::granted);
  there->advance(kTtl);
  EXPECT_EQ(outcome(*observer, acquire(2, kName)), Outcome::busy);
}

TEST_F(KubernetesTime, a_process_too_short_lived_to_observe_gets_the_lock_of_a_dead_holder) {
  std::atomic<std::int64_t> server_seconds = 1'800'000'000;
  const auto server_time = [&] { return std::chrono::seconds(server_seconds.load()); };
  const auto try_once = [&](std::uint64_t number) {
    auto store = open({.now = [this] { return there->now(); }, .server_time = server_time});
    return outcome(*store, acquire(number, kName));
  };
  {
    auto holder = open({.now = [this] { return here->now(); }, .server_time = server_time});
    ASSERT_EQ(outcome(*holder, acquire(1, kName)), Outcome::granted);
  }
  EXPECT_EQ(try_once(2), Outcome::busy);
  server_seconds += 19;
  EXPECT_EQ(try_once(3), Outcome::busy) << "its TTL of 10 s and the grace of 10 s are not over";
  server_seconds += 1;
  EXPECT_EQ(try_once(4), Outcome::granted);
  EXPECT_EQ(try_once(5), Outcome::busy);
}

TEST_F(KubernetesTime, the_date_of_the_servers_answers_is_used) {
  Request dead = acquire(1, kName);
  dead.ttl = Millis(1'000);
  ASSERT_EQ(outcome(*open(), dead), Outcome::granted);
  EXPECT_EQ(outcome(*open(), acquire(2, kName)), Outcome::busy);
  // Each try is a new process as far as the store can tell.
  EXPECT_TRUE(poll_until([&] { return outcome(*open(), acquire(3, kName)) == Outcome::granted; },
                         60s, 500ms));
}

}  // namespace
}  // namespace baton::test
