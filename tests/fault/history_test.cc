#include "history.h"

#include <gtest/gtest.h>

namespace baton::test {
namespace {

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

TEST(HistoryChecker, catches_a_write_that_follows_its_successors) {
  EXPECT_FALSE(judge({{'G', 10, 1}, {'G', 20, 2}}, {2, 1}).problems.empty());
}

}  // namespace
}  // namespace baton::test
