// Commands, options, clocks and costs, on fleets whose every millisecond the test decides.

#include <gtest/gtest.h>

#include "unit/schedule/fleet_checks.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

TEST(Control, pause_holds_every_replica_and_resume_lets_the_last_missed_fire_run) {
  Fleet fleet;
  fleet.job("a", rate(1s));
  fleet.join("n1");
  fleet.join("n2");
  fleet.run_for(5s + 500ms);
  fleet.command("a", JobCommand::pause);
  fleet.run_for(2s);
  const auto before = fleet.starts.size();
  fleet.run_for(20s);
  EXPECT_EQ(fleet.starts.size(), before);
  fleet.command("a", JobCommand::resume);
  fleet.run_for(1s + 900ms);
  const auto after = fleet.starts.size() - before;
  EXPECT_GE(after, 1U);
  EXPECT_LE(after, 3U) << "not one for each that was missed";
  expect_each_once(fleet.starts);
}

TEST(Control, a_lock_taken_by_hand_is_reported_once_after_try_for_and_the_fire_waits) {
  Fleet fleet;
  fleet.job("a", rate(10s), {.try_for = 2s + 300ms});
  fleet.join("n1");
  fleet.run_for(25s);
  const auto before = fleet.starts.size();
  const std::int64_t due = fleet.starts.back().due + 10'000;
  fleet.take("a", 15s);
  fleet.run_for(Millis(due + 2'295 - fleet.now()));
  EXPECT_TRUE(fleet.skips.empty());
  fleet.run_for(20ms);
  ASSERT_EQ(fleet.skips.size(), 1U);
  EXPECT_EQ(fleet.skips.front().second, SkipReason::busy);
  fleet.run_for(5s);
  EXPECT_EQ(fleet.skips.size(), 1U) << "once";
  EXPECT_EQ(fleet.starts.size(), before);
  fleet.run_for(8s);
  ASSERT_EQ(fleet.starts.size(), before + 1) << "it has stayed due";
}

TEST(Control, with_misfire_skip_missed_fires_stay_missed) {
  Fleet fleet;
  fleet.job("a", rate(10s), {.misfire = Misfire::skip});
  fleet.join("n1");
  fleet.run_for(25s);
  fleet.leave("n1");
  fleet.run_for(31s);  // the last missed one is 6 s ago, the next is in 4 s
  fleet.join("n2");
  const auto before = fleet.starts.size();
  fleet.run_for(3s);
  EXPECT_EQ(fleet.starts.size(), before);
  fleet.run_for(6s);
  ASSERT_EQ(fleet.starts.size(), before + 1);
  EXPECT_LE(fleet.starts.back().at - fleet.starts.back().due, 5);
}

TEST(Control, with_run_once_the_last_missed_fire_runs_late) {
  Fleet fleet;
  fleet.job("a", rate(10s));
  fleet.join("n1");
  fleet.run_for(25s);
  fleet.leave("n1");
  fleet.run_for(28s);
  fleet.join("n2");
  const auto before = fleet.starts.size();
  fleet.run_for(2s);
  ASSERT_EQ(fleet.starts.size(), before + 1);
  const Start& late = fleet.starts.back();
  EXPECT_EQ(late.due, fleet.starts[before - 1].due + 30'000) << "the last of those missed";
}

TEST(Control, run_now_is_one_fire_more_on_one_node_also_while_paused) {
  Fleet fleet;
  fleet.job("a", rate(60s, 30s));
  for (const auto* id : {"n1", "n2", "n3"}) fleet.join(id);
  fleet.run_for(2s);
  fleet.command("a", JobCommand::run_now);
  fleet.run_for(3s);
  ASSERT_EQ(fleet.starts.size(), 1U);
  EXPECT_TRUE(fleet.starts[0].manual);
  fleet.command("a", JobCommand::pause);
  fleet.command("a", JobCommand::run_now);
  fleet.command("a", JobCommand::run_now);
  fleet.run_for(3s);
  EXPECT_EQ(fleet.starts.size(), 3U);
  fleet.run_for(120s);
  EXPECT_EQ(fleet.starts.size(), 3U);
}

TEST(Control, skip_next_leaves_out_one_fire) {
  Fleet fleet;
  fleet.job("a", rate(10s));
  for (const auto* id : {"n1", "n2"}) fleet.join(id);
  fleet.run_for(25s);
  const auto before = fleet.starts.size();
  fleet.command("a", JobCommand::skip_next);
  fleet.run_for(30s);
  ASSERT_EQ(fleet.starts.size(), before + 2);
  EXPECT_EQ(fleet.starts[before].due, fleet.starts[before - 1].due + 20'000);
  EXPECT_EQ(fleet.starts[before].fire, fleet.starts[before - 1].fire + 2);
}

TEST(Options, a_canary_runs_on_the_named_nodes_only_and_is_shared_among_them) {
  Fleet fleet;
  fleet.job("a", rate(1s), {.nodes = {"n1", "n3"}});
  for (const auto* id : {"n1", "n2", "n3"}) fleet.join(id);
  fleet.run_for(42s);
  auto shares = by_node(fleet.starts);
  EXPECT_EQ(shares.count("n2"), 0U);
  EXPECT_NEAR(shares["n1"], 20, 2);
  EXPECT_NEAR(shares["n3"], 20, 2);
  for (const Start& start : fleet.starts) EXPECT_LE(start.at - start.due, 2);
}

TEST(Options, jitter_delays_a_fire_and_all_replicas_agree_by_how_much) {
  Fleet fleet;
  fleet.job("a", rate(1s), {.jitter = 500ms});
  for (const auto* id : {"n1", "n2", "n3"}) fleet.join(id);
  fleet.run_for(60s);
  expect_each_once(fleet.starts);
  std::set<std::int64_t> delays;
  for (const Start& start : fleet.starts) {
    const auto late = start.at - start.due;
    EXPECT_LE(late, 502);
    delays.insert(late / 100);
  }
  EXPECT_GE(delays.size(), 4U) << "spread over the range";
}

TEST(Options, at_least_for_keeps_the_lock_after_a_quick_run) {
  Fleet fleet;
  fleet.run_time = 1ms;
  fleet.job("a", rate(100ms), {.at_least_for = 1s});
  for (const auto* id : {"n1", "n2"}) fleet.join(id);
  fleet.run_for(10s);
  for (std::size_t i = 1; i < fleet.starts.size(); ++i) {
    EXPECT_GE(fleet.starts[i].at - fleet.starts[i - 1].at, 1000);
  }
  EXPECT_GE(fleet.starts.size(), 8U);
}

TEST(Options, a_failing_job_backs_off_and_a_success_ends_that) {
  Fleet fleet;
  fleet.job("a", delay(100ms), {.backoff = 1s, .backoff_most = 4s});
  fleet.fails = [](const Start& start) { return start.fire <= 4; };
  for (const auto* id : {"n1", "n2"}) fleet.join(id);
  fleet.run_for(20s);
  const auto& starts = fleet.starts;
  ASSERT_GT(starts.size(), 8U);
  const std::vector<std::int64_t> least{1000, 2000, 4000, 4000, 100, 100};
  for (std::size_t i = 0; i < least.size(); ++i) {
    EXPECT_GE(starts[i + 1].at - starts[i].end, least[i]) << i;
    EXPECT_LE(starts[i + 1].at - starts[i].end, least[i] + 100) << i;
  }
}

TEST(Options, a_run_that_outlasts_the_period_is_not_started_twice) {
  Fleet fleet;
  fleet.run_time = 2500ms;
  fleet.job("a", rate(1s), {.lock_ttl = 2s});
  for (const auto* id : {"n1", "n2", "n3"}) fleet.join(id);
  fleet.run_for(30s);
  expect_each_once(fleet.starts);
  expect_no_overlap(fleet.starts);
  EXPECT_GE(fleet.starts.size(), 9U);
}

TEST(Options, a_handler_that_does_not_return_is_reported_and_the_other_jobs_go_on) {
  Fleet fleet;
  fleet.workers = 1;
  fleet.run_time = 3600s;
  fleet.job("endless", rate(1s), {.report_after = 2s});
  fleet.join("n1");
  fleet.run_for(1500ms);
  fleet.run_time = 10ms;
  fleet.run_for(3s);
  EXPECT_EQ(fleet.stuck, (std::vector<std::string>{"endless"}));
  Fleet other;
  other.workers = 1;
  other.run_time = 3600s;
  other.job("endless", rate(1s), {.report_after = 2s});
  other.job("quick", rate(1s, 500ms), {.lock_ttl = 600s});
  other.join("n1", {"endless"});
  other.run_for(1500ms);
  other.leave("n1");
  other.join("n2");
  other.run_time = 10ms;
  other.run_for(10s);
  EXPECT_GE(other.starts_of("quick").size(), 8U);
}

TEST(Clocks, a_node_whose_clock_is_an_hour_ahead_does_not_silence_the_others) {
  Fleet fleet;
  fleet.job("rate", rate(1s));
  fleet.job("delay", delay(1s));
  fleet.job("cron", Schedule::cron("* * * * *").value());
  fleet.join("ahead", {}, std::chrono::hours(1));
  fleet.run_for(200s);
  fleet.leave("ahead");
  fleet.join("right");
  const auto before = fleet.starts.size();
  fleet.run_for(180s);
  EXPECT_GE(by_node(fleet.starts_of("rate"))["right"], 170);
  EXPECT_GE(by_node(fleet.starts_of("delay"))["right"], 170);
  EXPECT_GE(by_node(fleet.starts_of("cron"))["right"], 2);
  EXPECT_GT(fleet.starts.size(), before);
  expect_no_overlap(fleet.starts);
}

TEST(Clocks, small_differences_change_nothing) {
  Fleet fleet;
  fleet.job("a", rate(1s));
  fleet.join("n1", {}, 0ms);
  fleet.join("n2", {}, 15ms);
  fleet.join("n3", {}, -15ms);
  fleet.run_for(60s);
  expect_each_once(fleet.starts);
  EXPECT_GE(fleet.starts.size(), 58U);
  std::set<std::int64_t> dues;
  for (const Start& start : fleet.starts) EXPECT_TRUE(dues.insert(start.due).second);
}

TEST(Cost, those_whose_turn_it_is_not_ask_for_no_lock) {
  Fleet fleet;
  for (int i = 0; i < 50; ++i)
    fleet.job("job" + std::to_string(i), Schedule::fixed_rate(1s).value());
  for (int i = 0; i < 10; ++i) fleet.join("n" + std::to_string(i));
  fleet.run_for(5s);
  const auto starts = fleet.starts.size();
  const auto asks = fleet.asks();
  fleet.run_for(20s);
  const auto fires = fleet.starts.size() - starts;
  EXPECT_GE(fires, 950U);
  EXPECT_LE(fleet.asks() - asks, fires + fires / 20);
}

TEST(Cost, a_few_jobs_among_many_of_others_are_looked_at_one_by_one) {
  Fleet fleet;
  for (int i = 0; i < 100; ++i) fleet.job("other" + std::to_string(i), rate(10s));
  fleet.join("n0");
  fleet.run_for(1s);
  fleet.leave("n0");
  fleet.job("mine", rate(1s));
  fleet.join("n1", {"mine"});
  fleet.join("n2", {"mine"});
  fleet.run_for(1s);
  const auto looks = fleet.looks();
  fleet.run_for(60s);
  expect_each_once(fleet.starts_of("mine"));
  EXPECT_GE(fleet.starts_of("mine").size(), 58U);
  EXPECT_EQ(fleet.looks(), looks) << "never at all of them again";
  EXPECT_GE(fleet.few_looks(), 60U);
}

TEST(Cycles, count_what_a_node_ran_and_what_it_left_to_others) {
  Fleet fleet;
  for (const auto* job : {"import", "export", "cleanup"}) {
    fleet.job(job, rate(1s), {.group = "nightly"});
  }
  fleet.join("n1");
  fleet.join("n2");
  fleet.run_for(20s + 500ms);
  ASSERT_GE(fleet.cycles.size(), 30U);
  std::size_t locked = 0;
  std::size_t skipped = 0;
  for (const Cycle& cycle : fleet.cycles) {
    EXPECT_EQ(cycle.group, "nightly");
    locked += cycle.locked;
    skipped += cycle.skipped;
  }
  EXPECT_EQ(locked, fleet.starts.size());
  EXPECT_NEAR(static_cast<double>(skipped), static_cast<double>(locked), 6);
  EXPECT_NE(std::find(fleet.log.begin(), fleet.log.end(), "INFO Cycle started: nightly"),
            fleet.log.end());
  EXPECT_NE(std::find(fleet.log.begin(), fleet.log.end(),
                      "DEBUG Lock not acquired for: import (another node runs it)"),
            fleet.log.end());
}

}  // namespace
}  // namespace baton::test
