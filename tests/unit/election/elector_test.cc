// Who leads, and who knows of it.

#include "unit/election/elector_support.h"

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
  crashed->line->set(Line::refuses);
  auto restarted = following("pod-1", 0);
  EXPECT_TRUE(eventually([&] { return restarted->times_led() == 1; }));
  EXPECT_GT(restarted->last_term(), crashed->last_term());
}

TEST_F(Election, of_three_or_more_replicas_only_one_leads) {
  std::vector<std::unique_ptr<Candidate>> all;
  all.push_back(leading("a", {.ttl = 60s}));
  for (std::size_t i = 0; i < 4; ++i) all.push_back(following("f" + std::to_string(i), i));
  for (int round = 0; round < 20; ++round) {
    std::vector<std::uint64_t> calls;
    for (auto& one : all) calls.push_back(one->line->calls());
    time->advance(1s);
    // Each of the others asks again, at the latest after a second.
    EXPECT_TRUE(eventually([&] {
      int leaders = 0;
      bool asked = true;
      for (std::size_t i = 0; i < all.size(); ++i) {
        leaders += all[i]->elector.is_leader() ? 1 : 0;
        asked = asked && (i == 0 || all[i]->line->calls() > calls[i]);
      }
      EXPECT_LE(leaders, 1);
      return asked;
    }));
  }
  EXPECT_EQ(lock().holders.size(), 1U);
}

TEST_F(Election, when_the_leader_crashes_a_follower_leads_within_the_ttl) {
  auto leader = leading("a", {.ttl = 10s});
  auto follower = following("b", 0, {.ttl = 10s});
  const Instant crash = clock.now();
  leader->line->set(Line::refuses);
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
  auto follower = candidate("b");
  follower->run([&](Leadership& term, const std::stop_token& stop) {
    if (!leader->told_to_stop()) ++too_early;
    follower->began(term, stop);
    wait_for(stop);
    follower->over(term);
  });
  EXPECT_TRUE(poll_until([&] { return waiting() == 1; }));
  leader->line->set(Line::refuses);
  // The last moment at which the store still keeps it for the leader; no later than that it knows.
  while (lock().holders.at(0).expires_in > 100ms) time->advance(50ms);
  EXPECT_TRUE(poll_until([&] { return leader->told_to_stop(); }));
  EXPECT_FALSE(leader->elector.is_leader());
  EXPECT_TRUE(eventually([&] { return follower->elector.is_leader(); }));
  EXPECT_EQ(too_early, 0);
}

TEST_F(Election, different_elections_have_leaders_of_their_own) {
  auto outbox = candidate("a", {}, "outbox");
  auto views = candidate("b", {}, "views");
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
  b->line->set(Line::refuses);
  EXPECT_TRUE(eventually([&] { return errors == 1; }));
  for (int i = 0; i < 10; ++i) {
    const auto calls = b->line->calls();
    EXPECT_TRUE(eventually([&] { return b->line->calls() > calls; }));
  }
  EXPECT_EQ(errors, 1);
  b->line->set(Line::good);
  a->leave();
  EXPECT_TRUE(eventually([&] { return b->elector.is_leader(); }));
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
  a->line->set(Line::refuses);
  EXPECT_TRUE(eventually([&] { return a->told_to_stop(); }, 50ms));
  a->line->set(Line::good);
  EXPECT_TRUE(eventually([&] { return a->times_led() == 2; }, 50ms));
}

// Answers every request with one error for as long as it is told to.
class Troubled final : public LockStore {
 public:
  explicit Troubled(std::shared_ptr<LockStore> inner) : inner_(std::move(inner)) {}
  void set(std::optional<Error> trouble) {
    const std::lock_guard lock(mutex_);
    trouble_ = std::move(trouble);
  }
  Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
    {
      const std::lock_guard lock(mutex_);
      if (trouble_) return *trouble_;
    }
    return inner_->apply(batch, deadline);
  }
  Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
    return inner_->find(query, deadline);
  }
  std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] Capabilities capabilities() const override { return inner_->capabilities(); }

 private:
  std::shared_ptr<LockStore> inner_;
  std::mutex mutex_;
  std::optional<Error> trouble_;
};

TEST_F(Election, a_store_in_trouble_never_ends_an_election) {
  const auto troubled = std::make_shared<Troubled>(store);
  store = troubled;
  for (const Code code : {Code::unavailable, Code::bad_store, Code::unauthorized}) {
    std::atomic<int> reports{0};
    auto a = candidate("a", {.on_error = [&](const Error& error) {
                         EXPECT_EQ(error.code, code);
                         ++reports;
                       }});
    troubled->set(Error{.code = code, .message = "restarting"});
    a->stand();
    EXPECT_TRUE(eventually([&] { return reports >= 3; }, 100ms)) << to_string(code);
    troubled->set(std::nullopt);
    EXPECT_TRUE(eventually([&] { return a->elector.is_leader(); }, 100ms)) << to_string(code);
    a->leave();
  }
}

TEST_F(Election, stop_returns_in_time_when_the_store_hangs) {
  auto a = leading("a");
  auto b = following("b", 0);
  for (Candidate* stopping : {a.get(), b.get()}) {
    stopping->line->set(FlakyStore::Line::hangs);
    const auto before = time->now();
    auto stopped = std::async(std::launch::async, [&] { stopping->elector.stop(); });
    EXPECT_TRUE(eventually([&] { return is_there(stopped); }, 20ms));
    // The clock of the test runs faster than this machine.
    EXPECT_LT(time->now() - before, 90s);
    stopping->line->set(FlakyStore::Line::good);
    stopping->leave();
  }
}

TEST_F(Election, what_cannot_be_held_is_refused_with_a_reason) {
  auto line = std::make_shared<FlakyStore>(store);
  auto locks = LockClient::make(line, {.owner = "a", .clock = &clock}).value();
  const auto refused = [&](const std::string& name, ElectorOptions options) {
    options.clock = &clock;
    Elector elector(locks, name, std::move(options));
    const auto ended = elector.run([](Leadership&, const std::stop_token&) {});
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

TEST(ElectionName, is_a_lock_that_people_can_find) {
  EXPECT_EQ(print(election_lock("outbox").value(), Mode::X),
            "lock:exclusive:leader:leading:outbox");
  EXPECT_EQ(print_path(election_lock("views/orders").value()), "leader/views/orders");
  EXPECT_EQ(election_lock("outbox", "EU").value().region, "EU");
}

}  // namespace
}  // namespace baton::test
