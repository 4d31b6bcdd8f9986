// How leadership goes from one replica to the next: by resigning, by transfer, on a store without
// a queue.

#include "unit/election/elector_support.h"

namespace baton::test {
namespace {

TEST_F(Election, a_graceful_shutdown_hands_over_at_once) {
  auto leader = leading("a");
  auto follower = following("b", 0);
  leader->leave();
  EXPECT_EQ(leader->why_ended(), "stopped");
  EXPECT_TRUE(poll_until([&] { return follower->elector.is_leader(); })) << "no time has passed";
}

TEST_F(Election, terms_grow_from_leader_to_leader) {
  auto a = leading("a");
  auto b = following("b", 0);
  Token last = a->last_term();
  for (int i = 0; i < 6; ++i) {
    Candidate& now = a->elector.is_leader() ? *a : *b;
    Candidate& next = &now == a.get() ? *b : *a;
    EXPECT_TRUE(eventually([&] { return waiting() == 1; }));
    EXPECT_TRUE(now.elector.resign());
    EXPECT_TRUE(poll_until([&] { return next.elector.is_leader() && next.working == 1; }));
    EXPECT_GT(next.last_term(), last);
    last = next.last_term();
  }
}

TEST_F(Election, who_resigns_does_not_lead_again_while_others_wait) {
  auto a = leading("a");
  auto b = following("b", 0);
  auto c = following("c", 1);
  EXPECT_TRUE(a->elector.resign());
  EXPECT_FALSE(a->elector.resign()) << "it does not lead any more";
  EXPECT_TRUE(poll_until([&] { return b->elector.is_leader(); })) << "no time has passed";
  EXPECT_TRUE(eventually([&] { return waiting() == 2; })) << "it stands again, as the last";
  EXPECT_EQ(lock().waiters.at(0).owner, "c");
  EXPECT_EQ(lock().waiters.at(1).owner, "a");
  EXPECT_EQ(a->why_ended(), "resigned");
}

TEST_F(Election, who_resigns_alone_leads_again_after_the_cooldown) {
  auto a = leading("a", {.cooldown = 10s});
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(poll_until([&] { return lock().holders.empty(); }));
  time->advance(9s);
  EXPECT_TRUE(a->waits_on());
  EXPECT_EQ(a->times_led(), 1U);
  EXPECT_TRUE(eventually([&] { return a->times_led() == 2; }));
}

TEST_F(Election, a_transfer_goes_to_the_named_node_out_of_turn) {
  auto a = leading("a");
  auto b = following("b", 0);
  auto c = following("c", 1);
  EXPECT_EQ(a->elector.transfer("nobody").error().code, Code::denied);
  EXPECT_TRUE(a->elector.is_leader()) << "a transfer to nobody changes nothing";
  EXPECT_EQ(b->elector.transfer("c").error().code, Code::lost);
  EXPECT_TRUE(a->elector.transfer("c"));
  EXPECT_TRUE(poll_until([&] { return c->elector.is_leader(); }));
  EXPECT_EQ(b->times_led(), 0U);
  EXPECT_EQ(a->why_ended(), "transferred to c");
}

TEST_F(Election, an_operator_makes_the_leader_resign_after_its_work_has_ended) {
  auto a = leading("a");
  auto b = following("b", 0);
  auto operators = LockClient::make(store, {.owner = "ops", .clock = &clock}).value();
  const auto name = election_lock("outbox").value();
  const auto asked = resign_leader(operators, name, "maintenance");
  ASSERT_TRUE(asked && *asked);
  EXPECT_EQ((*asked)->node, "a");
  EXPECT_TRUE(poll_until([&] { return b->elector.is_leader(); })) << "no time has passed";
  EXPECT_EQ(a->why_ended(), "revoked: resign: maintenance");
  EXPECT_TRUE(eventually([&] { return waiting() == 1; }));
}

TEST_F(Election, an_operator_transfers_to_a_named_node) {
  auto a = leading("a");
  auto b = following("b", 0);
  auto c = following("c", 1);
  auto operators = LockClient::make(store, {.owner = "ops", .clock = &clock}).value();
  const auto name = election_lock("outbox").value();
  EXPECT_EQ(transfer_leader(operators, name, "d").error().code, Code::denied);
  EXPECT_TRUE(transfer_leader(operators, name, "c"));
  EXPECT_TRUE(poll_until([&] { return c->elector.is_leader(); }));
  EXPECT_EQ(b->times_led(), 0U);
}

TEST_F(Election, without_a_leader_there_is_nobody_to_ask) {
  auto operators = LockClient::make(store, {.clock = &clock}).value();
  const auto name = election_lock("outbox").value();
  EXPECT_FALSE(leader_of(operators, name).value());
  EXPECT_FALSE(resign_leader(operators, name).value());
  EXPECT_FALSE(transfer_leader(operators, name, "a").value());
}

TEST_F(Election, without_a_queue_followers_try_again_and_who_resigns_lets_them) {
  const ElectorOptions options{.retry_interval = 500ms, .cooldown = 10ms};
  const auto two = without_a_queue(options);
  Candidate* const a = two.first.get();
  Candidate* const b = two.second.get();
  time->advance(100ms);
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
  EXPECT_EQ(a->times_led(), 1U);
  b->leave();
  EXPECT_TRUE(eventually([&] { return a->times_led() == 2; }));
}

TEST_F(Election, the_retry_interval_of_30_s_and_cooldown_of_5_s_of_the_design_are_options) {
  const ElectorOptions options{.retry_interval = 30s, .cooldown = 5s};
  const auto two = without_a_queue(options);
  Candidate* const a = two.first.get();
  Candidate* const b = two.second.get();
  a->line->set(Line::refuses);
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }, 100ms));
}

}  // namespace
}  // namespace baton::test
