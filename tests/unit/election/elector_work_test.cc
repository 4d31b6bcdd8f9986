// The work of a leader: when it is told to end, what it may do, and what becomes of one that fails.

#include "unit/election/elector_support.h"

#include <stdexcept>

namespace baton::test {
namespace {

// Leads, and does not end when it is told to.
class DeafWork {
 public:
  template <typename Candidate>
  explicit DeafWork(Candidate& by) {
    by.run([&by, deaf = deaf_](Leadership& term, const std::stop_token& stop) {
      by.began(term, stop);
      while (*deaf || !stop.stop_requested()) std::this_thread::sleep_for(1ms);
      by.over(term);
    });
    EXPECT_TRUE(poll_until([&] { return by.working == 1; }));
  }
  void hear() { *deaf_ = false; }

 private:
  std::shared_ptr<std::atomic<bool>> deaf_ = std::make_shared<std::atomic<bool>>(true);
};

TEST_F(Election, work_that_ignores_its_stop_token_is_reported_and_not_run_twice) {
  std::mutex mutex;
  std::vector<Overrun> reported;
  auto a = candidate("a", {.grace = 3s, .on_overrun = [&](const Overrun& overrun) {
                             const std::lock_guard lock(mutex);
                             reported.push_back(overrun);
                           }});
  DeafWork work(*a);
  const Token term = a->last_term();
  auto b = following("b", 0);
  a->line->set(Line::refuses);
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
  a->line->set(Line::good);
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
  EXPECT_TRUE(a->waits_on());
  EXPECT_EQ(a->times_led(), 1U);
  EXPECT_TRUE(lock().holders.empty() && waiting() == 0);
  work.hear();
  EXPECT_TRUE(eventually([&] { return a->times_led() == 2; }));
  EXPECT_EQ(reported.size(), 1U);
}

TEST_F(Election, who_resigns_keeps_the_lock_until_its_work_has_returned) {
  std::atomic<int> reported{0};
  auto a = candidate("a", {.grace = 1s, .on_overrun = [&](const Overrun& overrun) {
                             EXPECT_TRUE(overrun.still_leads);
                             ++reported;
                           }});
  DeafWork work(*a);
  auto b = following("b", 0);
  EXPECT_TRUE(a->elector.resign());
  EXPECT_TRUE(eventually([&] { return reported == 1; }));
  EXPECT_FALSE(a->elector.is_leader());
  EXPECT_FALSE(b->elector.is_leader());
  work.hear();
  EXPECT_TRUE(poll_until([&] { return b->elector.is_leader(); }));
}

TEST_F(Election, work_that_throws_resigns_is_reported_and_leads_again_after_a_backoff) {
  std::mutex mutex;
  std::vector<std::string> errors;
  auto a = candidate("a", {.on_error = [&](const Error& error) {
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

TEST_F(Election, the_fence_sees_a_term_before_the_work_does_anything) {
  std::mutex mutex;
  std::vector<FenceToken> shown;
  auto a = candidate("a", {.fence_first = [&](std::span<const FenceToken> tokens) -> Result<void> {
                       const std::lock_guard lock(mutex);
                       shown.assign(tokens.begin(), tokens.end());
                       return {};
                     }});
  std::atomic<int> runs{0};
  a->run([&](Leadership& term, const std::stop_token& stop) {
    {
      const std::lock_guard lock(mutex);
      EXPECT_EQ(shown, term.tokens());
      ASSERT_EQ(shown.size(), 1U);
      EXPECT_EQ(shown[0], (FenceToken{term.key(), Mode::X, term.term()}));
    }
    ++runs;
    wait_for(stop);
  });
  EXPECT_TRUE(poll_until([&] { return runs == 1; }));
}

TEST_F(Election, a_term_that_the_fence_refuses_is_given_up_before_the_work_runs) {
  std::mutex mutex;
  std::vector<std::string> errors;
  std::atomic<int> asked{0};
  ElectorOptions options{.fence_first = [&](std::span<const FenceToken>) -> Result<void> {
                           if (++asked > 1) return {};
                           return Error{.code = Code::fenced, .message = "somebody newer"};
                         },
                         .on_error =
                             [&](const Error& error) {
                               const std::lock_guard lock(mutex);
                               errors.push_back(error.message);
                             }};
  auto a = candidate("a", options);
  std::atomic<int> runs{0};
  a->run([&](Leadership&, const std::stop_token& stop) {
    EXPECT_EQ(asked, 2);
    ++runs;
    wait_for(stop);
  });
  EXPECT_TRUE(poll_until([&] { return asked == 1 && lock().holders.empty(); })) << "given up";
  EXPECT_EQ(runs, 0);
  EXPECT_TRUE(eventually([&] { return runs == 1; })) << "stands again";
  const std::lock_guard lock(mutex);
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].find("somebody newer"), std::string::npos) << errors[0];
}

TEST_F(Election, work_that_returns_gives_leadership_up) {
  auto a = candidate("a", {.cooldown = 1h});
  a->run([&](Leadership& term, const std::stop_token& stop) { a->began(term, stop); });
  auto b = candidate("b");
  EXPECT_TRUE(poll_until([&] { return a->times_led() == 1; }));
  b->stand();
  EXPECT_TRUE(poll_until([&] { return b->elector.is_leader(); }));
}

TEST_F(Election, the_work_may_resign_and_stop_by_itself) {
  auto a = candidate("a");
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
  auto b = candidate("b");
  std::stop_source stop;
  std::jthread run([&] {
    EXPECT_TRUE(b->elector.run([](Leadership&, const std::stop_token&) {}, stop.get_token()));
  });
  EXPECT_TRUE(poll_until([&] { return waiting() == 1; }));
  stop.request_stop();
  run.join();
  EXPECT_TRUE(poll_until([&] { return waiting() == 0; })) << "it has left the queue";
  EXPECT_TRUE(b->elector.run([](Leadership&, const std::stop_token&) {})) << "stopped for good";
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

TEST_F(Election, an_elector_runs_once_at_a_time) {
  auto a = leading("a");
  EXPECT_EQ(a->elector.run([](Leadership&, const std::stop_token&) {}).error().code,
            Code::bad_request);
  EXPECT_TRUE(a->elector.is_leader());
}

}  // namespace
}  // namespace baton::test
