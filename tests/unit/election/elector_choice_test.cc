// Which replica leads: priorities, preemption, health, replicas that never lead.

#include <future>

#include "unit/election/elector_support.h"

namespace baton::test {
namespace {

// The health of one replica, as the test says it is.
struct Health {
  std::atomic<bool> good{true};
  std::atomic<int> asked{0};
  std::function<Result<void>()> check() {
    return [this]() -> Result<void> {
      ++asked;
      if (good) return {};
      return Error{.code = Code::unavailable, .message = "the disk is full"};
    };
  }
};

class ElectorChoice : public Election {
 protected:
  // The priorities that can be read in the store.
  std::size_t candidates_known() {
    Query query;
    query.subject = "leader-candidate";
    return store->find(query, BootClock::now() + 30s).value().items.size();
  }
  std::unique_ptr<Candidate> standing(const std::string& node, std::size_t ahead,
                                      ElectorOptions options) {
    auto made = following(node, ahead, std::move(options));
    EXPECT_TRUE(poll_until([&] { return candidates_known() == ahead + 2; }));  // with the leader
    return made;
  }
};

TEST_F(ElectorChoice, a_term_that_ends_is_followed_by_the_highest_priority) {
  auto a = leading("a", {.priority = 1});
  auto b = standing("b", 0, {.priority = 1});
  auto c = standing("c", 1, {.priority = 5});
  auto d = standing("d", 2, {.priority = 5});
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(poll_until([&] { return c->elector.is_leader(); })) << "no time has passed";
  EXPECT_EQ(b->times_led() + d->times_led(), 0U) << "of equals the first in the queue";
}

TEST_F(ElectorChoice, a_candidate_that_the_queue_chose_gives_way_before_its_work_begins) {
  auto a = leading("a", {.ttl = 10s, .priority = 9});
  auto b = standing("b", 0, {.priority = 1});
  auto c = standing("c", 1, {.priority = 5});
  a->line->set(FlakyStore::Line::refuses);
  EXPECT_TRUE(eventually([&] { return c->elector.is_leader(); }));
  EXPECT_EQ(b->times_led(), 0U);
  a->line->set(FlakyStore::Line::good);
}

TEST_F(ElectorChoice, a_better_candidate_that_is_dead_does_not_keep_the_others_from_leading) {
  auto a = leading("a", {.priority = 1});
  auto b = standing("b", 0, {.priority = 1});
  auto c = standing("c", 1, {.priority = 5});
  c->line->set(FlakyStore::Line::refuses);
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader() || a->times_led() == 2; }));
  EXPECT_EQ(c->times_led(), 0U);
  c->line->set(FlakyStore::Line::good);
}

TEST_F(ElectorChoice, without_preempt_a_better_candidate_waits_for_its_turn) {
  auto a = leading("a", {.priority = 1});
  auto b = standing("b", 0, {.priority = 5});
  time->advance(5s);
  EXPECT_TRUE(b->waits_on());
  EXPECT_TRUE(a->elector.is_leader());
}

TEST_F(ElectorChoice, with_preempt_it_takes_over_within_a_second_after_the_work_has_ended) {
  auto a = leading("a", {.priority = 1});
  auto b = candidate("b", {.priority = 5, .preempt = true});
  const auto joined = time->now();
  b->stand();
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
  EXPECT_LE(time->now() - joined, 1s);
  EXPECT_EQ(a->why_ended(), "revoked: transfer to b");
  EXPECT_GT(b->last_term(), a->last_term());
}

TEST_F(ElectorChoice, who_was_asked_to_go_does_not_preempt_its_successor) {
  auto a = leading("a", {.priority = 5, .preempt = true});
  auto b = standing("b", 0, {.priority = 1});
  auto operators = LockClient::make(store, {.owner = "ops", .clock = &clock}).value();
  ASSERT_TRUE(transfer_leader(operators, election_lock("outbox").value(), "b"));
  EXPECT_TRUE(poll_until([&] { return b->elector.is_leader(); }));
  EXPECT_TRUE(eventually([&] { return waiting() == 1; }));
  time->advance(5s);
  EXPECT_TRUE(a->waits_on());
  EXPECT_TRUE(b->elector.is_leader());
  EXPECT_TRUE(b->elector.resign());
  EXPECT_TRUE(eventually([&] { return a->times_led() == 2; }));
}

TEST_F(ElectorChoice, with_preempt_it_leaves_a_leader_of_its_own_priority_alone) {
  auto a = leading("a", {.priority = 5});
  auto b = standing("b", 0, {.priority = 5, .preempt = true});
  time->advance(5s);
  EXPECT_TRUE(b->waits_on());
  EXPECT_TRUE(a->elector.is_leader());
}

TEST_F(ElectorChoice, a_sick_candidate_does_not_stand) {
  Health health;
  health.good = false;
  auto a = candidate("a", {.healthy = health.check()});
  a->stand();
  EXPECT_TRUE(eventually([&] { return health.asked >= 2; }));
  EXPECT_EQ(a->times_led(), 0U);
  EXPECT_TRUE(lock().holders.empty());
  health.good = true;
  EXPECT_TRUE(eventually([&] { return a->elector.is_leader(); }));
}

TEST_F(ElectorChoice, a_candidate_that_falls_ill_leaves_the_queue) {
  Health health;
  auto a = leading("a");
  auto b = following("b", 0, {.healthy = health.check()});
  health.good = false;
  EXPECT_TRUE(eventually([&] { return waiting() == 0; }));
  EXPECT_TRUE(a->elector.is_leader());
  health.good = true;
  EXPECT_TRUE(eventually([&] { return waiting() == 1; }));
}

TEST_F(ElectorChoice, a_leader_that_falls_ill_resigns_within_its_ttl) {
  Health health;
  std::atomic<int> told{0};
  auto a = leading("a", {.ttl = 9s, .healthy = health.check(), .on_error = [&](const Error& error) {
                           EXPECT_NE(error.message.find("the disk is full"), std::string::npos);
                           ++told;
                         }});
  auto b = following("b", 0);
  health.good = false;
  const auto ill = time->now();
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
  EXPECT_LE(time->now() - ill, 9s);
  EXPECT_EQ(a->why_ended(), "not fit to lead");
  time->advance(30s);
  EXPECT_TRUE(eventually([&] { return health.asked > 4; }));
  EXPECT_EQ(waiting(), 0U);
  EXPECT_EQ(told, 1) << "once for as long as it lasts";
}

TEST_F(ElectorChoice, a_health_check_that_hangs_has_failed) {
  std::promise<void> free;
  std::atomic<bool> hang{false};
  auto a = leading("a", {.ttl = 9s, .healthy = [&]() -> Result<void> {
                           if (hang) free.get_future().wait();
                           return {};
                         }});
  auto b = following("b", 0);
  hang = true;
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
  EXPECT_EQ(a->why_ended(), "not fit to lead");
  hang = false;
  free.set_value();
  EXPECT_TRUE(eventually([&] { return waiting() == 1; })) << "it has answered, and stands again";
}

TEST_F(ElectorChoice, a_health_check_that_throws_has_failed) {
  auto a = candidate("a", {.healthy = []() -> Result<void> { throw std::runtime_error("no"); }});
  a->stand();
  time->advance(30s);
  EXPECT_EQ(a->times_led(), 0U);
}

TEST_F(ElectorChoice, who_never_leads_is_told_who_does) {
  std::promise<std::string> seen;
  std::atomic<bool> first{true};
  auto watcher = candidate("w", {.never_lead = true, .on_new_leader = [&](const Leader& leader) {
                                   if (first.exchange(false)) seen.set_value(leader.node);
                                 }});
  watcher->stand();
  time->advance(5s);
  EXPECT_TRUE(lock().holders.empty()) << "nobody else is there, and it does not lead";
  auto a = leading("a");
  auto leader = seen.get_future();
  EXPECT_TRUE(eventually([&] { return leader.wait_for(0s) == std::future_status::ready; }));
  EXPECT_EQ(leader.get(), "a");
}

TEST_F(ElectorChoice, what_cannot_be_is_refused) {
  auto preempt = candidate("a", {.preempt = true});
  EXPECT_EQ(preempt->elector.run([](Leadership&, std::stop_token) {}).error().code,
            Code::bad_request);
  auto interval = candidate("b", {.health_interval = -1ms});
  EXPECT_EQ(interval->elector.run([](Leadership&, std::stop_token) {}).error().code,
            Code::bad_request);
}

}  // namespace
}  // namespace baton::test
