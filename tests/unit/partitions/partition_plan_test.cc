// What tests/explore shows for every order of events, here one decision at a time.

#include <gtest/gtest.h>

#include "partitions/plan.h"

namespace baton::partitions {
namespace {

View four(const std::string& self, const std::vector<std::string>& holders) {
  View view{.self = self, .members = {"a", "b"}};
  Token token = 0;
  for (const auto& holder : holders) {
    view.partitions.push_back(
        {.holder = holder, .token = ++token, .own = holder == self ? Own::holding : Own::none});
  }
  return view;
}

TEST(PartitionPlan, the_quotas_add_up_and_differ_by_one_at_most) {
  for (std::size_t count = 1; count <= 40; ++count) {
    for (std::size_t members = 1; members <= 45; ++members) {
      std::size_t sum = 0;
      for (std::size_t rank = 0; rank < members; ++rank) {
        sum += quota(rank, members, count);
        EXPECT_LE(quota(0, members, count) - quota(rank, members, count), 1U);
      }
      EXPECT_EQ(sum, count);
    }
  }
}

TEST(PartitionPlan, a_join_raises_no_quota_whatever_the_rank_of_the_newcomer) {
  for (std::size_t count = 1; count <= 40; ++count) {
    for (std::size_t members = 1; members <= 20; ++members) {
      for (std::size_t rank = 0; rank < members; ++rank) {
        EXPECT_LE(quota(rank, members + 1, count), quota(rank, members, count));
        EXPECT_LE(quota(rank + 1, members + 1, count), quota(rank, members, count));
      }
    }
  }
}

TEST(PartitionPlan, free_partitions_are_taken_up_to_the_quota_and_the_rest_after_a_second) {
  View view = four("b", {"", "", "", ""});
  Plan plan = decide(view);
  EXPECT_EQ(plan.take, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(plan.look_again_in, kFreeForAnyone);
  view.partitions[0].free_for = kFreeForAnyone;
  view.partitions[1].free_for = kFreeForAnyone - Millis(10);
  plan = decide(view);
  EXPECT_EQ(plan.take, (std::vector<std::size_t>{2, 3, 0}));
  EXPECT_EQ(plan.look_again_in, Millis(10));
}

TEST(PartitionPlan, who_is_below_its_quota_waits_for_what_came_last_to_one_above) {
  const Plan plan = decide(four("b", {"a", "a", "a", "a"}));
  EXPECT_EQ(plan.wait_for, (std::vector<std::size_t>{3, 2}));
  EXPECT_TRUE(plan.take.empty());
}

TEST(PartitionPlan, only_what_a_member_waits_for_is_handed_over_and_only_above_the_quota) {
  View view = four("a", {"a", "a", "a", "b"});
  EXPECT_TRUE(decide(view).hand_over.empty());
  view.partitions[0].waiters = {"stranger"};
  EXPECT_TRUE(decide(view).hand_over.empty());
  view.partitions[0].waiters = {"stranger", "b"};
  view.partitions[1].waiters = {"b"};
  EXPECT_EQ(decide(view).hand_over, (std::vector<HandOver>{{1, "b"}}));
  view.partitions[2] = {.holder = "b"};
  EXPECT_TRUE(decide(view).hand_over.empty());
}

TEST(PartitionPlan, a_wait_that_no_holder_will_serve_is_withdrawn) {
  View view = four("b", {"a", "a", "a", "b"});
  view.partitions[1].own = Own::waiting;
  EXPECT_TRUE(decide(view).withdraw.empty());
  view.members.push_back("c");  // quotas 2, 1, 1
  EXPECT_EQ(decide(view).withdraw, (std::vector<std::size_t>{1}));
}

TEST(PartitionPlan, who_may_take_nothing_still_hands_over) {
  View view = four("a", {"a", "a", "a", ""});
  view.may_take = false;
  view.partitions[2].waiters = {"b"};
  view.partitions[3].free_for = kFreeForAnyone;
  const Plan plan = decide(view);
  EXPECT_TRUE(plan.take.empty());
  EXPECT_EQ(plan.hand_over, (std::vector<HandOver>{{2, "b"}}));
}

}  // namespace
}  // namespace baton::partitions
