#include "history.h"

#include <gtest/gtest.h>

namespace baton::test {
namespace {

using namespace std::chrono_literals;

TEST(HistoryChecker, accepts_holders_one_after_the_other) {
  const Verdict verdict =
      judge({{'G', 10, 1}, {'B', 11, 1}, {'W', 12, 1}, {'G', 20, 2}, {'B', 21, 2}}, {1, 2});
  EXPECT_TRUE(verdict.problems.empty()) << verdict.problems.front();
  EXPECT_EQ(verdict.grants, 2U);
  EXPECT_EQ(verdict.writes, 1U);
}

TEST(HistoryChecker, catches_two_who_believe_at_once) {
  EXPECT_FALSE(judge({{'G', 10, 1}, {'G', 20, 2}, {'B', 21, 1}}, {}).problems.empty());
}

TEST(HistoryChecker, catches_a_token_that_was_granted_twice) {
  EXPECT_FALSE(judge({{'G', 10, 1}, {'G', 20, 1}}, {}).problems.empty());
}

TEST(HistoryChecker, catches_a_token_that_is_lower_than_one_before) {
  EXPECT_FALSE(judge({{'G', 10, 2}, {'G', 20, 1}}, {}).problems.empty());
  EXPECT_FALSE(
      judge({{'A', 5, 0, "a"}, {'G', 10, 2, "a"}, {'A', 11, 0, "b"}, {'G', 20, 1, "b"}}, {})
          .problems.empty());
}

// Two that share, or one that was paused before it could note its grant.
TEST(HistoryChecker, accepts_grants_of_one_time_that_are_noted_in_either_order) {
  const Verdict verdict =
      judge({{'A', 5, 0, "a"}, {'A', 6, 0, "b"}, {'G', 10, 2, "a"}, {'G', 20, 1, "b"}}, {});
  EXPECT_TRUE(verdict.problems.empty()) << verdict.problems.front();
}

TEST(HistoryChecker, catches_a_write_that_follows_its_successors) {
  EXPECT_FALSE(judge({{'G', 10, 1}, {'G', 20, 2}}, {2, 1}).problems.empty());
}

constexpr Millis kTtl = 3s;

constexpr std::int64_t ns(Millis at) { return std::chrono::nanoseconds(at).count(); }

// "a" holds from second 1, "b" waits from second 2; then as said.
Verdict judge_orphan(const std::vector<Event>& then) {
  std::vector<Event> events = {{'A', ns(0s), 0, "a"}, {'G', ns(1s), 1, "a"}, {'A', ns(2s), 0, "b"}};
  events.insert(events.end(), then.begin(), then.end());
  return judge(std::move(events), {}, kTtl);
}

const Millis kLate = 10s + kTtl + kSlack + 1ms;

TEST(HistoryChecker, accepts_an_orphan_that_ends_with_its_ttl) {
  const Verdict verdict = judge_orphan({{'D', ns(10s), 0, "a"}, {'G', ns(10s + kTtl), 2, "b"}});
  EXPECT_TRUE(verdict.problems.empty()) << verdict.problems.front();
  EXPECT_EQ(verdict.orphans, 1U);
  EXPECT_EQ(verdict.longest_orphan, kTtl);
}

TEST(HistoryChecker, catches_an_orphan_of_the_dead_that_outlives_its_ttl) {
  EXPECT_FALSE(judge_orphan({{'D', ns(10s), 0, "a"}, {'G', ns(kLate), 2, "b"}}).problems.empty());
}

TEST(HistoryChecker, catches_an_orphan_of_the_paused_that_outlives_its_ttl) {
  EXPECT_FALSE(judge_orphan({{'P', ns(10s), 0, "a"}, {'G', ns(kLate), 2, "b"}}).problems.empty());
}

TEST(HistoryChecker, catches_an_orphan_that_nobody_ever_follows) {
  EXPECT_FALSE(judge_orphan({{'D', ns(10s), 0, "a"}, {'E', ns(kLate), 0, "b"}}).problems.empty());
}

TEST(HistoryChecker, catches_a_lock_that_was_let_go_and_is_not_passed_on) {
  EXPECT_FALSE(judge_orphan({{'L', ns(10s), 1, "a"}, {'G', ns(kLate), 2, "b"}}).problems.empty());
}

TEST(HistoryChecker, does_not_blame_an_orphan_that_nobody_waited_for) {
  const Verdict verdict = judge_orphan({{'E', ns(9s), 0, "b"},
                                        {'D', ns(10s), 0, "a"},
                                        {'A', ns(kLate), 0, "c"},
                                        {'G', ns(kLate + 1s), 2, "c"}});
  EXPECT_TRUE(verdict.problems.empty()) << verdict.problems.front();
}

TEST(HistoryChecker, does_not_blame_a_dead_waiter_for_waiting) {
  const Verdict verdict =
      judge_orphan({{'D', ns(9s), 0, "b"}, {'D', ns(10s), 0, "a"}, {'W', ns(kLate), 1, "x"}});
  EXPECT_TRUE(verdict.problems.empty()) << verdict.problems.front();
}

TEST(HistoryChecker, does_not_blame_a_holder_that_goes_on) {
  const Verdict verdict = judge_orphan({{'P', ns(10s), 0, "a"},
                                        {'C', ns(10s + kTtl / 2), 0, "a"},
                                        {'L', ns(kLate), 1, "a"},
                                        {'G', ns(kLate + 1s), 2, "b"}});
  EXPECT_TRUE(verdict.problems.empty()) << verdict.problems.front();
}

TEST(HistoryChecker, counts_anew_when_the_server_is_back) {
  const std::vector<Event> away = {
      {'D', ns(10s), 0, "a"}, {'O', ns(11s), 0, "server"}, {'U', ns(30s), 0, "server"}};
  auto soon = away;
  soon.push_back({'G', ns(30s + kTtl), 2, "b"});
  EXPECT_TRUE(judge_orphan(soon).problems.empty());
  auto late = away;
  late.push_back({'G', ns(30s + kTtl + kSlack + 1ms), 2, "b"});
  EXPECT_FALSE(judge_orphan(late).problems.empty());
}

}  // namespace
}  // namespace baton::test
