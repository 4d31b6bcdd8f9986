// The behaviours of a leader election, each named: first those of every election of its kind, then
// those that are Baton's own.

#include "unit/elector_support.h"

#include <stdexcept>

namespace baton::test {
namespace {

TEST_F(Election, one_replica_alone_leads_and_leads_again_after_a_restart) {
  auto first = leading("pod-1");
  const Token term = first->last_term();
  first.reset();
  auto restarted = leading("pod-1");
  EXPECT_GT(restarted->last_term(), term);
}

TEST_F(Election, one_replica_that_crashed_leads_again_when_its_ttl_is_over) {
  auto crashed = leading("pod-1");
  crashed->line->set(FlakyStore::Line::refuses);
  auto restarted = following("pod-1", 0);
  EXPECT_TRUE(eventually([&] { return restarted->times_led() == 1; }));
  EXPECT_GT(restarted->last_term(), crashed->last_term());
}

TEST_F(Election, of_three_or_more_replicas_only_one_leads) {
  std::vector<std::unique_ptr<Replica>> all;
  all.push_back(leading("a"));
  for (std::size_t i = 0; i < 4; ++i) all.push_back(following("f" + std::to_string(i), i));
  for (int round = 0; round < 20; ++round) {
    time->advance(500ms);
    int leaders = 0;
    for (auto& one : all) leaders += one->elector.is_leader() ? 1 : 0;
    EXPECT_LE(leaders, 1);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(lock().holders.size(), 1U);
}

TEST_F(Election, when_the_leader_crashes_a_follower_leads_within_the_ttl) {
  auto leader = leading("a", {.ttl = 10s});
  auto follower = following("b", 0, {.ttl = 10s});
  const Instant crash = clock.now();
  leader->line->set(FlakyStore::Line::refuses);
  // A follower asks at least every second of its own clock, which stands still until it has (or, if
  // it had just asked, for a second of ours). So it does not matter how fast this machine is.
  while (clock.now() < crash + 12s && follower->working == 0) {
    const auto asked = follower->line->calls();
    time->advance(1s);
    poll_until([&] { return follower->line->calls() > asked || follower->working == 1; }, 1s);
  }
  EXPECT_TRUE(poll_until([&] { return follower->working == 1; }))
      << "not within the ttl and two rounds of asking";
  EXPECT_GT(follower->last_term(), leader->last_term());
}

TEST_F(Election, the_stop_token_fires_before_another_replica_can_lead) {
  auto leader = leading("a");
  std::atomic<int> too_early{0};
  auto follower = replica("b");
  follower->run([&](Leadership& term, const std::stop_token& stop) {
    if (!leader->told_to_stop()) ++too_early;
    follower->began(term, stop);
    wait_for(stop);
    follower->over(term);
  });
  EXPECT_TRUE(poll_until([&] { return waiting() == 1; }));
  leader->line->set(FlakyStore::Line::refuses);
  // The last moment at which the store still keeps it for the leader; no later than that it knows.
  while (lock().holders.at(0).expires_in > 100ms) time->advance(50ms);
  EXPECT_TRUE(poll_until([&] { return leader->told_to_stop(); }));
  EXPECT_FALSE(leader->elector.is_leader());
  EXPECT_TRUE(eventually([&] { return follower->elector.is_leader(); }));
  EXPECT_EQ(too_early, 0);
}

TEST_F(Election, a_graceful_shutdown_hands_over_at_once) {
  auto leader = leading("a");
  auto follower = following("b", 0);
  leader->leave();
  EXPECT_EQ(leader->why_ended(), "stopped");
  EXPECT_TRUE(poll_until([&] { return follower->elector.is_leader(); })) << "no time has passed";
}

TEST_F(Election, different_elections_have_leaders_of_their_own) {
  auto outbox = replica("a", {}, "outbox");
  auto views = replica("b", {}, "views");
  outbox->stand();
  views->stand();
  EXPECT_TRUE(
      poll_until([&] { return outbox->elector.is_leader() && views->elector.is_leader(); }));
}

TEST_F(Election, one_process_may_lead_several_elections_and_lose_one_of_them) {
  auto line = std::make_shared<FlakyStore>(store);
  auto locks = LockClient::make(line, {.owner = "a", .clock = &clock}).value();
  Elector outbox(locks, "outbox", {.cooldown = 1h, .clock = &clock});
  Elector views(locks, "views/orders", {.clock = &clock});
  ASSERT_TRUE(outbox.start({}));
  ASSERT_TRUE(views.start({}));
  EXPECT_TRUE(poll_until([&] { return outbox.is_leader() && views.is_leader(); }));
  EXPECT_TRUE(outbox.resign());
  EXPECT_TRUE(poll_until([&] { return lock().holders.empty(); }));
  EXPECT_FALSE(outbox.is_leader());
  EXPECT_TRUE(views.is_leader());
  outbox.stop();
  views.stop();
}

TEST_F(Election, terms_grow_from_leader_to_leader) {
  auto a = leading("a");
  auto b = following("b", 0);
  Token last = a->last_term();
  for (int i = 0; i < 6; ++i) {
    Replica& now = a->elector.is_leader() ? *a : *b;
    Replica& next = &now == a.get() ? *b : *a;
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
  std::this_thread::sleep_for(5ms);
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

TEST_F(Election, everybody_can_see_who_leads_in_which_term_and_since_when) {
  auto a = leading("a", {.metadata = {{"zone", "eu-1"}}});
  auto b = following("b", 0);
  time->advance(2s);
  const auto seen = b->elector.leader();
  ASSERT_TRUE(seen && *seen);
  EXPECT_EQ((*seen)->node, "a");
  EXPECT_EQ((*seen)->term, a->last_term());
  EXPECT_EQ((*seen)->led_for, 2s);
  EXPECT_EQ((*seen)->metadata.at("zone"), "eu-1");
  EXPECT_EQ((*seen)->candidates, 1U);
  EXPECT_FALSE(b->elector.is_leader());
}

TEST_F(Election, followers_are_told_of_every_new_leader) {
  std::mutex mutex;
  std::vector<std::string> told;
  const auto listen = [&](const Leader& leader) {
    const std::lock_guard lock(mutex);
    told.push_back(leader.node);
  };
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return told.size();
  };
  auto a = leading("a");
  auto b = following("b", 0, {.on_new_leader = listen});
  EXPECT_TRUE(eventually([&] { return count() == 1; }));
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(eventually([&] { return count() == 2; }));
  b->leave();
  EXPECT_EQ(told, (std::vector<std::string>{"a", "b"}));
}

TEST_F(Election, a_follower_whose_store_does_not_answer_says_so_once_and_goes_on) {
  std::atomic<int> errors{0};
  auto a = leading("a");
  auto b = following("b", 0,
                     {.look_interval = 100ms,
                      .on_new_leader = [](const Leader&) {},
                      .on_error = [&](const Error&) { ++errors; }});
  b->line->set(FlakyStore::Line::refuses);
  EXPECT_TRUE(eventually([&] { return errors == 1; }));
  for (int i = 0; i < 10; ++i) {
    const auto calls = b->line->calls();
    EXPECT_TRUE(eventually([&] { return b->line->calls() > calls; }));
  }
  EXPECT_EQ(errors, 1);
  b->line->set(FlakyStore::Line::good);
  a->leave();
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
}

TEST_F(Election, work_that_ignores_its_stop_token_is_reported_and_not_run_twice) {
  std::mutex mutex;
  std::vector<Overrun> reported;
  auto a = replica("a", {.grace = 3s, .on_overrun = [&](const Overrun& overrun) {
                           const std::lock_guard lock(mutex);
                           reported.push_back(overrun);
                         }});
  std::atomic<bool> deaf{true};
  a->run([&](Leadership& term, const std::stop_token& stop) {
    a->began(term, stop);
    while (deaf || !stop.stop_requested()) std::this_thread::sleep_for(1ms);
    a->over(term);
  });
  EXPECT_TRUE(poll_until([&] { return a->working == 1; }));
  const Token term = a->last_term();
  auto b = following("b", 0);
  a->line->set(FlakyStore::Line::refuses);
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
  a->line->set(FlakyStore::Line::good);
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return !reported.empty();
  }));
  EXPECT_EQ(reported.at(0).term, term);
  EXPECT_GE(reported.at(0).since_stop, 3s);
  EXPECT_FALSE(reported.at(0).still_leads);
  // The other one leaves: the lock is free, and yet this process does not take it.
  b->leave();
  time->advance(5s);
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(a->times_led(), 1U);
  EXPECT_TRUE(lock().holders.empty() && waiting() == 0);
  deaf = false;
  EXPECT_TRUE(eventually([&] { return a->times_led() == 2; }));
  EXPECT_EQ(reported.size(), 1U);
}

TEST_F(Election, who_resigns_keeps_the_lock_until_its_work_has_returned) {
  std::atomic<int> reported{0};
  auto a = replica("a", {.grace = 1s, .on_overrun = [&](const Overrun& overrun) {
                           EXPECT_TRUE(overrun.still_leads);
                           ++reported;
                         }});
  std::atomic<bool> deaf{true};
  a->run([&](Leadership& term, const std::stop_token& stop) {
    a->began(term, stop);
    while (deaf || !stop.stop_requested()) std::this_thread::sleep_for(1ms);
    a->over(term);
  });
  EXPECT_TRUE(poll_until([&] { return a->working == 1; }));
  auto b = following("b", 0);
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(eventually([&] { return reported == 1; }));
  EXPECT_FALSE(a->elector.is_leader());
  EXPECT_FALSE(b->elector.is_leader());
  deaf = false;
  EXPECT_TRUE(poll_until([&] { return b->elector.is_leader(); }));
}

TEST_F(Election, work_that_throws_resigns_is_reported_and_leads_again_after_a_backoff) {
  std::mutex mutex;
  std::vector<std::string> errors;
  auto a = replica("a", {.on_error = [&](const Error& error) {
                     const std::lock_guard lock(mutex);
                     errors.push_back(error.message);
                   }});
  std::atomic<int> runs{0};
  a->run([&](Leadership&, const std::stop_token& stop) {
    if (++runs == 1) throw std::runtime_error("the disk is full");
    if (runs == 2) throw 42;  // NOLINT: users do such things
    wait_for(stop);
  });
  EXPECT_TRUE(poll_until([&] { return runs == 1 && lock().holders.empty(); })) << "resigned";
  EXPECT_TRUE(eventually([&] { return runs == 3; }));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(errors.size(), 2U);
  EXPECT_NE(errors[0].find("the disk is full"), std::string::npos) << errors[0];
}

TEST_F(Election, work_that_returns_gives_leadership_up) {
  auto a = replica("a", {.cooldown = 1h});
  a->run([&](Leadership& term, const std::stop_token& stop) { a->began(term, stop); });
  auto b = replica("b");
  EXPECT_TRUE(poll_until([&] { return a->times_led() == 1; }));
  b->stand();
  EXPECT_TRUE(poll_until([&] { return b->elector.is_leader(); }));
}

TEST_F(Election, the_work_may_resign_and_stop_by_itself) {
  auto a = replica("a");
  std::atomic<int> runs{0};
  a->run([&](Leadership& term, const std::stop_token& stop) {
    EXPECT_TRUE(term.valid());
    if (++runs == 1) {
      term.resign();
    } else {
      a->elector.stop();
    }
    EXPECT_TRUE(stop.stop_requested());
    EXPECT_FALSE(term.valid());
    EXPECT_FALSE(term.why_ending().empty());
  });
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
  a->thread.join();
  EXPECT_TRUE(lock().holders.empty());
}

TEST_F(Election, a_stop_token_ends_the_run_of_leader_and_follower) {
  auto a = leading("a");
  auto b = replica("b");
  std::stop_source stop;
  std::jthread run(
      [&] { EXPECT_TRUE(b->elector.run([](Leadership&, std::stop_token) {}, stop.get_token())); });
  EXPECT_TRUE(poll_until([&] { return waiting() == 1; }));
  stop.request_stop();
  run.join();
  EXPECT_TRUE(poll_until([&] { return waiting() == 0; })) << "it has left the queue";
  EXPECT_TRUE(b->elector.run([](Leadership&, std::stop_token) {})) << "stopped for good";
}

TEST_F(Election, callbacks_tell_of_election_and_loss_and_do_not_block) {
  auto line = std::make_shared<FlakyStore>(store);
  auto locks = LockClient::make(line, {.owner = "a", .clock = &clock}).value();
  std::mutex mutex;
  std::vector<std::string> events;
  const auto note = [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    events.push_back(what);
  };
  const auto count = [&] {
    const std::lock_guard lock(mutex);
    return events.size();
  };
  Elector elector(locks, "outbox", {.clock = &clock});
  ASSERT_TRUE(elector.start(
      {.on_elected = [&](Leadership& term) { note("elected " + std::to_string(term.term())); },
       .on_lost =
           [&](Leadership&, const std::string& why) {
             EXPECT_EQ(lock().holders.size(), 1U) << "it is let go only after this";
             note(why);
           }}));
  EXPECT_EQ(elector.start({}).error().code, Code::bad_request);
  EXPECT_TRUE(poll_until([&] { return count() == 1; }));
  EXPECT_TRUE(elector.is_leader());
  const auto first = elector.leader().value()->term;
  EXPECT_TRUE(elector.resign());
  EXPECT_TRUE(eventually([&] { return count() == 3; }));
  const auto second = elector.leader().value()->term;
  elector.stop();
  EXPECT_EQ(events, (std::vector<std::string>{"elected " + std::to_string(first), "resigned",
                                              "elected " + std::to_string(second), "stopped"}));
  EXPECT_TRUE(lock().holders.empty());
}

TEST_F(Election, without_a_queue_followers_try_again_and_who_resigns_lets_them) {
  store = std::make_shared<NoQueue>(store);
  const ElectorOptions options{.retry_interval = 500ms, .cooldown = 10ms};
  auto a = leading("a", options);
  auto b = replica("b", options);
  b->stand();
  time->advance(100ms);
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
  EXPECT_EQ(a->times_led(), 1U);
  b->leave();
  EXPECT_TRUE(eventually([&] { return a->times_led() == 2; }));
}

TEST_F(Election, the_retry_interval_of_30_s_and_cooldown_of_5_s_of_the_design_are_options) {
  store = std::make_shared<NoQueue>(store);
  const ElectorOptions options{.retry_interval = 30s, .cooldown = 5s};
  auto a = leading("a", options);
  auto b = replica("b", options);
  b->stand();
  a->line->set(FlakyStore::Line::refuses);
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }, 100ms));
}

TEST_F(Election, followers_go_on_with_everything_that_is_not_the_work_of_the_leader) {
  auto a = leading("a");
  auto b = following("b", 0);
  for (auto* each : {a.get(), b.get()}) {
    EXPECT_TRUE(each->locks.try_acquire({.subject = "order", .resources = {"7"}}))
        << "a command that any replica may be given";
  }
  EXPECT_FALSE(b->elector.is_leader());
  EXPECT_EQ(b->times_led(), 0U);
}

TEST_F(Election, a_leader_cut_off_from_its_store_leads_again_when_it_is_back) {
  auto a = leading("a");
  a->line->set(FlakyStore::Line::refuses);
  EXPECT_TRUE(eventually([&] { return a->told_to_stop(); }, 50ms));
  a->line->set(FlakyStore::Line::good);
  EXPECT_TRUE(eventually([&] { return a->times_led() == 2; }, 50ms));
}

TEST_F(Election, what_cannot_be_held_is_refused_with_a_reason) {
  auto line = std::make_shared<FlakyStore>(store);
  auto locks = LockClient::make(line, {.owner = "a", .clock = &clock}).value();
  const auto refused = [&](const std::string& name, ElectorOptions options) {
    options.clock = &clock;
    Elector elector(locks, name, std::move(options));
    const auto ended = elector.run([](Leadership&, std::stop_token) {});
    return ended ? Code::cancelled : ended.error().code;
  };
  EXPECT_EQ(refused("", {}), Code::bad_name);
  EXPECT_EQ(refused("a//b", {}), Code::bad_name);
  EXPECT_EQ(refused(std::string(300, 'x'), {}), Code::bad_name);
  EXPECT_EQ(refused("x", {.ttl = 1ms}), Code::bad_request);
  EXPECT_EQ(refused("x", {.ttl = 48h}), Code::bad_request);
  EXPECT_EQ(refused("x", {.retry_interval = 0ms}), Code::bad_request);
  EXPECT_EQ(refused("x", {.grace = -1ms}), Code::bad_request);
}

TEST_F(Election, an_elector_runs_once_at_a_time) {
  auto a = leading("a");
  EXPECT_EQ(a->elector.run([](Leadership&, std::stop_token) {}).error().code, Code::bad_request);
  EXPECT_TRUE(a->elector.is_leader());
}

TEST(ElectionName, is_a_lock_that_people_can_find) {
  EXPECT_EQ(print(election_lock("outbox").value(), Mode::X),
            "lock:exclusive:leader:leading:outbox");
  EXPECT_EQ(print_path(election_lock("views/orders").value()), "leader/views/orders");
  EXPECT_EQ(election_lock("outbox", "EU").value().region, "EU");
}

}  // namespace
}  // namespace baton::test
