// The promises of the scheduler, on fleets whose every millisecond the test decides.

#include <gtest/gtest.h>

#include <cmath>

#include "fleet.h"
#include "schedule/rank.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

Schedule rate(Millis period, Millis phase = Millis(0)) {
  return Schedule::fixed_rate(period, phase).value();
}
Schedule delay(Millis time) { return Schedule::fixed_delay(time).value(); }

// Every fire is done exactly once, in order, with none left out.
void expect_each_once(const std::vector<Start>& starts) {
  for (std::size_t i = 0; i < starts.size(); ++i) {
    ASSERT_EQ(starts[i].fire, static_cast<std::int64_t>(i) + 1);
    ASSERT_EQ(starts[i].attempt, 1);
    if (i > 0) {
      ASSERT_GT(starts[i].token, starts[i - 1].token);
    }
  }
}

// No run of a job begins while anybody could still believe to run it.
void expect_no_overlap(const std::vector<Start>& starts) {
  std::map<std::string, std::int64_t> free_at;
  for (const Start& start : starts) {
    ASSERT_GE(start.at, free_at[start.job]) << start.job << " fire " << start.fire;
    free_at[start.job] = start.free_at == INT64_MAX ? start.at : start.free_at;
  }
}

std::map<std::string, int> by_node(const std::vector<Start>& starts, std::size_t from = 0,
                                   std::size_t count = SIZE_MAX) {
  std::map<std::string, int> shares;
  for (std::size_t i = from; i < starts.size() && i - from < count; ++i) ++shares[starts[i].node];
  return shares;
}

TEST(Rank, one_node_is_first_and_the_turn_moves_on_with_every_fire) {
  for (std::uint64_t nodes : {1U, 2U, 3U, 7U}) {
    for (std::uint64_t fire = 0; fire < 50; ++fire) {
      std::set<std::uint64_t> ranks;
      for (std::uint64_t i = 0; i < nodes; ++i) ranks.insert(schedule::rank(i, nodes, fire, 99));
      EXPECT_EQ(ranks.size(), nodes);
      EXPECT_EQ(*ranks.rbegin(), nodes - 1);
      const std::uint64_t first = (fire + 99 % nodes) % nodes;
      EXPECT_EQ(schedule::rank(first, nodes, fire, 99), 0U);
    }
  }
  EXPECT_EQ(schedule::rank(3, 3, 1, 0), 3U) << "a node that is not listed goes last";
}

TEST(Rank, the_turns_of_a_missing_node_fall_to_both_neighbours_alike) {
  std::map<std::uint64_t, int> heirs;
  for (std::uint64_t fire = 0; fire < 300; ++fire) {
    std::uint64_t heir = 0;
    for (const std::uint64_t node : {0U, 1U}) {  // node 2 is gone
      if (schedule::rank(node, 3, fire, 5) < schedule::rank(heir, 3, fire, 5)) heir = node;
    }
    ++heirs[heir];
  }
  EXPECT_EQ(heirs[0], 150);
  EXPECT_EQ(heirs[1], 150);
}

TEST(Fleet, every_fire_runs_exactly_once_on_time_and_in_order) {
  Fleet fleet;
  fleet.job("a", rate(1s));
  for (const auto* id : {"n1", "n2", "n3"}) fleet.join(id);
  fleet.run_for(60s);
  expect_each_once(fleet.starts);
  expect_no_overlap(fleet.starts);
  ASSERT_GE(fleet.starts.size(), 58U);
  for (const Start& start : fleet.starts) {
    EXPECT_EQ(start.due % 1000, 0) << "nominal";
    EXPECT_LE(start.at - start.due, 2) << "whose turn it is does not wait";
  }
}

TEST(Fleet, a_fixed_delay_counts_from_the_end_of_the_run_before_whoever_ran_it) {
  Fleet fleet;
  fleet.run_time = 300ms;
  fleet.job("a", delay(1s));
  for (const auto* id : {"n1", "n2"}) fleet.join(id);
  fleet.run_for(30s);
  const auto& starts = fleet.starts;
  expect_each_once(starts);
  ASSERT_GE(starts.size(), 20U);
  EXPECT_LE(starts[0].at, 30) << "the first at once";
  for (std::size_t i = 1; i < starts.size(); ++i) {
    EXPECT_GE(starts[i].at - starts[i - 1].end, 1000);
    EXPECT_LE(starts[i].at - starts[i - 1].end, 1060);
  }
}

TEST(Fleet, a_late_timer_finds_the_fire_superseded) {
  Fleet fleet;
  fleet.noise = 40ms;  // more than a rank: the order is often broken
  fleet.run_time = 1ms;
  fleet.job("a", rate(200ms));
  for (const auto* id : {"n1", "n2", "n3", "n4"}) fleet.join(id);
  fleet.run_for(60s);
  expect_each_once(fleet.starts);
  expect_no_overlap(fleet.starts);
}

// The shares of 100 cycles, in percent, each node of each job.
class Shares : public ::testing::TestWithParam<std::tuple<int, int, int>> {};

double balance_score(const std::map<std::string, int>& shares, int nodes) {
  double total = 0;
  for (const auto& [node, count] : shares) total += count;
  double deviation = 0;
  for (const auto& [node, count] : shares) deviation += std::abs(count - total / nodes);
  deviation += (nodes - static_cast<double>(shares.size())) * total / nodes;
  return 100 * (1 - deviation / (2 * total * (1 - 1.0 / nodes)));
}

TEST_P(Shares, of_each_node_are_33_to_66_percent_of_two_or_25_to_42_of_three_in_every_run) {
  const auto [nodes, jobs, least] = GetParam();
  const int most = nodes == 2 ? 66 : 42;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Fleet fleet(seed);
    fleet.noise = 8ms;
    fleet.run_time = 50ms;
    for (int i = 0; i < jobs; ++i) fleet.job("type" + std::to_string(i) + "-poll", delay(1s));
    for (int i = 0; i < nodes; ++i) fleet.join("node-" + std::to_string(i));
    fleet.run_for(110s);
    std::map<std::string, int> all;
    for (int i = 0; i < jobs; ++i) {
      auto starts = fleet.starts_of("type" + std::to_string(i) + "-poll");
      ASSERT_GE(starts.size(), 100U);
      starts.resize(100);
      expect_each_once(starts);
      for (const auto& [node, count] : by_node(starts)) {
        EXPECT_GE(count, least) << node << " of " << i << " in run " << seed;
        EXPECT_LE(count, most) << node << " of " << i << " in run " << seed;
        all[node] += count;
      }
      EXPECT_EQ(by_node(starts).size(), static_cast<std::size_t>(nodes));
    }
    EXPECT_GE(balance_score(all, nodes), 90) << "run " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Shares,
                         ::testing::Values(std::tuple{2, 3, 33}, std::tuple{3, 3, 25},
                                           std::tuple{3, 10, 25}),
                         [](const auto& fleet) {
                           return std::to_string(std::get<0>(fleet.param)) + "_nodes_" +
                                  std::to_string(std::get<1>(fleet.param)) + "_types";
                         });

TEST(Fleet, is_even_again_within_three_cycles_after_a_node_leaves_and_after_it_returns) {
  Fleet fleet;
  fleet.job("a", rate(1s));
  fleet.job("b", rate(1s));
  fleet.job("c", rate(1s));
  for (const auto* id : {"n1", "n2", "n3"}) fleet.join(id);
  fleet.run_for(30s);
  fleet.leave("n2");
  fleet.run_for(3s);
  const auto left = fleet.starts.size();
  fleet.run_for(20s);
  auto shares = by_node(fleet.starts, left);
  EXPECT_EQ(shares.count("n2"), 0U);
  EXPECT_NEAR(shares["n1"], shares["n3"], 6);
  fleet.join("n2");
  fleet.run_for(3s);
  const auto back = fleet.starts.size();
  fleet.run_for(30s);
  shares = by_node(fleet.starts, back);
  for (const auto* id : {"n1", "n2", "n3"}) EXPECT_NEAR(shares[id], 30, 6) << id;
  expect_no_overlap(fleet.starts);
}

TEST(Fleet, the_work_of_a_crashed_node_is_shared_even_before_its_registration_expires) {
  Fleet fleet;
  fleet.ttl = 600s;
  fleet.job("a", rate(1s));
  for (const auto* id : {"n1", "n2", "n3"}) fleet.join(id);
  fleet.run_for(10s + 500ms);
  fleet.crash("n3");
  const auto before = fleet.starts.size();
  fleet.run_for(60s);
  auto shares = by_node(fleet.starts, before);
  EXPECT_NEAR(shares["n1"], 30, 2);
  EXPECT_NEAR(shares["n2"], 30, 2);
  expect_each_once(fleet.starts);
}

struct Crashed {
  Fleet fleet;
  std::int64_t at = 0;
  std::int64_t fire = 0;
};

// Two nodes; the one that runs fire 3 dies in the middle of it.
void crash_in_the_middle(Crashed& world, Schedule schedule, JobOptions options) {
  world.fleet.run_time = 400ms;
  options.lock_ttl = 3s;
  world.fleet.job("a", std::move(schedule), std::move(options));
  world.fleet.join("n1");
  world.fleet.join("n2");
  while (world.fleet.starts.size() < 3) world.fleet.run_for(1ms);
  world.fleet.run_for(100ms);
  world.at = world.fleet.now();
  world.fire = world.fleet.starts.back().fire;
  world.fleet.crash(world.fleet.starts.back().node);
}

TEST(Crash, an_unfinished_fire_runs_again_under_a_higher_token_after_the_ttl) {
  for (const bool by_rate : {true, false}) {
    Crashed world;
    crash_in_the_middle(world, by_rate ? rate(10s) : delay(10s), {});
    world.fleet.run_for(4s);
    const auto& starts = world.fleet.starts;
    ASSERT_EQ(starts.size(), 4U);
    EXPECT_EQ(starts[3].fire, world.fire);
    EXPECT_EQ(starts[3].attempt, 2);
    EXPECT_GT(starts[3].token, starts[2].token);
    EXPECT_TRUE(starts[3].done);
    EXPECT_LE(starts[3].at, starts[2].at + 3000 + 200) << "long before the next fire is due";
    expect_no_overlap(starts);
    world.fleet.run_for(30s);
    EXPECT_EQ(starts[4].fire, world.fire + 1);
    EXPECT_EQ(starts[4].attempt, 1);
  }
}

TEST(Crash, an_unfinished_fire_runs_before_the_next_one_and_none_is_lost) {
  Crashed world;
  crash_in_the_middle(world, rate(1s), {});
  world.fleet.run_for(10s);
  const auto& starts = world.fleet.starts;
  ASSERT_GT(starts.size(), 5U);
  EXPECT_EQ(starts[3].fire, world.fire);
  EXPECT_EQ(starts[4].fire, world.fire + 1);
  EXPECT_GE(starts[4].at, starts[3].end);
  expect_no_overlap(starts);
}

TEST(Crash, where_the_store_notices_a_death_at_once_so_do_the_others) {
  Fleet fleet;
  fleet.run_time = 20s;
  fleet.job("a", delay(60s), {.lock_ttl = 60s});
  fleet.join("n1");
  fleet.join("n2");
  while (fleet.starts.empty()) fleet.run_for(1ms);
  fleet.run_for(5s);
  const std::int64_t died = fleet.now();
  fleet.vanish(fleet.starts[0].node);
  fleet.run_for(1s);
  ASSERT_EQ(fleet.starts.size(), 2U) << "55 s before the lease would have expired";
  EXPECT_EQ(fleet.starts[1].fire, 1);
  EXPECT_EQ(fleet.starts[1].attempt, 2);
  EXPECT_LE(fleet.starts[1].at, died + 600);
}

TEST(Crash, with_skip_a_fire_starts_at_most_once) {
  Crashed world;
  crash_in_the_middle(world, rate(1s), {.on_crash = OnCrash::skip});
  world.fleet.run_for(20s);
  const auto& starts = world.fleet.starts;
  std::set<std::int64_t> fires;
  for (const Start& start : starts) EXPECT_TRUE(fires.insert(start.fire).second) << start.fire;
  EXPECT_FALSE(starts[2].done);
  EXPECT_EQ(starts[3].fire, world.fire + 1);
  EXPECT_LE(starts[3].at, starts[2].at + 3000 + 200);
  expect_no_overlap(starts);
}

TEST(Crash, a_node_that_stands_still_past_the_ttl_loses_its_fire_to_another) {
  Fleet fleet;
  fleet.run_time = 400ms;
  fleet.job("a", rate(2s), {.lock_ttl = 3s});
  fleet.join("n1");
  fleet.join("n2");
  while (fleet.starts.size() < 2) fleet.run_for(1ms);
  const std::string frozen = fleet.starts.back().node;
  fleet.freeze(frozen, 8s);
  fleet.run_for(20s);
  const auto again = fleet.starts[2];
  EXPECT_EQ(again.fire, 2);
  EXPECT_EQ(again.attempt, 2);
  EXPECT_NE(again.node, frozen);
  EXPECT_FALSE(fleet.starts[1].done) << "its late release changes nothing";
  std::map<std::int64_t, int> done;
  for (const Start& start : fleet.starts) done[start.fire] += start.done ? 1 : 0;
  for (const auto& [fire, times] : done) {
    if (fire < fleet.starts.back().fire) {
      EXPECT_EQ(times, 1) << fire;
    }
  }
}

TEST(Property, with_random_crashes_every_fire_is_done_and_none_has_two_live_leases) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    Fleet fleet(seed);
    fleet.noise = 30ms;
    fleet.ttl = 2s;
    fleet.run_time = Millis(1 + static_cast<std::int64_t>(fleet.random(300)));
    fleet.job("rate", rate(700ms), {.lock_ttl = 1s});
    fleet.job("delay", delay(500ms), {.lock_ttl = 2s});
    fleet.job("once", rate(900ms), {.lock_ttl = 1s, .on_crash = OnCrash::skip});
    int next = 0;
    for (; next < 4; ++next) fleet.join("n" + std::to_string(next));
    for (int i = 0; i < 60; ++i) {
      fleet.run_for(Millis(static_cast<std::int64_t>(fleet.random(1500))));
      const auto ids = fleet.random(2) == 0 ? fleet.running_nodes() : fleet.node_ids();
      if (ids.empty()) continue;
      const std::string& victim = ids[fleet.random(ids.size())];
      if (fleet.random(3) == 0) {
        fleet.freeze(victim, Millis(static_cast<std::int64_t>(fleet.random(4000))));
        continue;
      }
      fleet.crash(victim);
      fleet.join("n" + std::to_string(next++));
    }
    fleet.run_for(20s);  // time to heal
    expect_no_overlap(fleet.starts_of("rate"));
    expect_no_overlap(fleet.starts_of("delay"));
    expect_no_overlap(fleet.starts_of("once"));
    for (const auto* job : {"rate", "delay"}) {
      std::map<std::int64_t, int> done;
      for (const Start& start : fleet.starts_of(job)) done[start.fire] += start.done ? 1 : 0;
      ASSERT_GT(done.size(), 20U);
      std::int64_t expected = 1;
      for (const auto& [fire, times] : done) {
        EXPECT_EQ(fire, expected++) << job << ": none left out, seed " << seed;
        if (fire != done.rbegin()->first) {
          EXPECT_EQ(times, 1) << job << " " << fire;
        }
      }
    }
    std::set<std::int64_t> begun;
    for (const Start& start : fleet.starts_of("once")) {
      EXPECT_TRUE(begun.insert(start.fire).second) << "started twice, seed " << seed;
    }
  }
}

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
  for (const auto* type : {"order", "inventory", "wes"}) {
    fleet.job(std::string(type) + "-observer-poll", rate(1s), {.group = "observer"});
  }
  fleet.join("n1");
  fleet.join("n2");
  fleet.run_for(20s + 500ms);
  ASSERT_GE(fleet.cycles.size(), 30U);
  std::size_t locked = 0;
  std::size_t skipped = 0;
  for (const Cycle& cycle : fleet.cycles) {
    EXPECT_EQ(cycle.group, "observer");
    locked += cycle.locked;
    skipped += cycle.skipped;
  }
  EXPECT_EQ(locked, fleet.starts.size());
  EXPECT_NEAR(static_cast<double>(skipped), static_cast<double>(locked), 6);
  EXPECT_NE(std::find(fleet.log.begin(), fleet.log.end(),
                      "INFO Starting scheduled polling cycle for all observer types"),
            fleet.log.end());
  EXPECT_NE(std::find(fleet.log.begin(), fleet.log.end(),
                      "DEBUG Lock not acquired for: order-observer-poll (another node is polling)"),
            fleet.log.end());
}

}  // namespace
}  // namespace baton::test
