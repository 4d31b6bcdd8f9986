// What becomes of fires whose nodes die, on fleets whose every millisecond the test decides.

#include <gtest/gtest.h>

#include "support/seed.h"
#include "unit/schedule/fleet_checks.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

struct TwoNodes {
  Fleet fleet;
  Start running;  // the fire that runs when begin() returns
};

// Two nodes, and time until fire `fire` has run for so long.
void begin(TwoNodes& world, Schedule schedule, JobOptions options, std::size_t fire,
           Millis running_for = Millis(0)) {
  world.fleet.job("a", std::move(schedule), std::move(options));
  world.fleet.join("n1");
  world.fleet.join("n2");
  while (world.fleet.starts.size() < fire) world.fleet.run_for(1ms);
  world.fleet.run_for(running_for);
  world.running = world.fleet.starts.back();
}

// The node that runs fire 3 dies in the middle of it.
void crash_in_the_middle(TwoNodes& world, Schedule schedule, JobOptions options) {
  world.fleet.run_time = 400ms;
  options.lock_ttl = 3s;
  begin(world, std::move(schedule), std::move(options), 3, 100ms);
  world.fleet.crash(world.running.node);
}

TEST(Crash, an_unfinished_fire_runs_again_under_a_higher_token_after_the_ttl) {
  for (const bool by_rate : {true, false}) {
    TwoNodes world;
    crash_in_the_middle(world, by_rate ? rate(10s) : delay(10s), {});
    world.fleet.run_for(4s);
    const auto& starts = world.fleet.starts;
    ASSERT_EQ(starts.size(), 4U);
    EXPECT_EQ(starts[3].fire, world.running.fire);
    EXPECT_EQ(starts[3].attempt, 2);
    EXPECT_GT(starts[3].token, starts[2].token);
    EXPECT_TRUE(starts[3].done);
    EXPECT_LE(starts[3].at, starts[2].at + 3000 + 200) << "long before the next fire is due";
    expect_no_overlap(starts);
    world.fleet.run_for(30s);
    EXPECT_EQ(starts[4].fire, world.running.fire + 1);
    EXPECT_EQ(starts[4].attempt, 1);
  }
}

TEST(Crash, an_unfinished_fire_runs_before_the_next_one_and_none_is_lost) {
  TwoNodes world;
  crash_in_the_middle(world, rate(1s), {});
  world.fleet.run_for(10s);
  const auto& starts = world.fleet.starts;
  ASSERT_GT(starts.size(), 5U);
  EXPECT_EQ(starts[3].fire, world.running.fire);
  EXPECT_EQ(starts[4].fire, world.running.fire + 1);
  EXPECT_GE(starts[4].at, starts[3].end);
  expect_no_overlap(starts);
}

TEST(Crash, where_the_store_notices_a_death_at_once_so_do_the_others) {
  TwoNodes world;
  world.fleet.run_time = 20s;
  begin(world, delay(60s), {.lock_ttl = 60s}, 1, 5s);
  const std::int64_t died = world.fleet.now();
  world.fleet.vanish(world.running.node);
  world.fleet.run_for(1s);
  const auto& starts = world.fleet.starts;
  ASSERT_EQ(starts.size(), 2U) << "55 s before the lease would have expired";
  EXPECT_EQ(starts[1].fire, 1);
  EXPECT_EQ(starts[1].attempt, 2);
  EXPECT_LE(starts[1].at, died + 600);
}

TEST(Crash, with_skip_a_fire_starts_at_most_once) {
  TwoNodes world;
  crash_in_the_middle(world, rate(1s), {.on_crash = OnCrash::skip});
  world.fleet.run_for(20s);
  const auto& starts = world.fleet.starts;
  std::set<std::int64_t> fires;
  for (const Start& start : starts) EXPECT_TRUE(fires.insert(start.fire).second) << start.fire;
  EXPECT_FALSE(starts[2].done);
  EXPECT_EQ(starts[3].fire, world.running.fire + 1);
  EXPECT_LE(starts[3].at, starts[2].at + 3000 + 200);
  expect_no_overlap(starts);
}

TEST(Crash, a_node_that_stands_still_past_the_ttl_loses_its_fire_to_another) {
  TwoNodes world;
  world.fleet.run_time = 400ms;
  begin(world, rate(2s), {.lock_ttl = 3s}, 2);
  world.fleet.freeze(world.running.node, 8s);
  world.fleet.run_for(20s);
  const auto& starts = world.fleet.starts;
  EXPECT_EQ(starts[2].fire, 2);
  EXPECT_EQ(starts[2].attempt, 2);
  EXPECT_NE(starts[2].node, world.running.node);
  EXPECT_FALSE(starts[1].done) << "its late release changes nothing";
  std::map<std::int64_t, int> done;
  for (const Start& start : starts) done[start.fire] += start.done ? 1 : 0;
  for (const auto& [fire, times] : done) {
    if (fire < starts.back().fire) {
      EXPECT_EQ(times, 1) << fire;
    }
  }
}

// Of 14 nodes, as many as are not killed by a handler that ends its process in fire 2.
std::size_t nodes_left(Fleet& fleet, JobOptions options) {
  options.lock_ttl = 1s;
  fleet.ttl = 1s;
  fleet.kills = [](const Start& start) { return start.job == "deadly" && start.fire == 2; };
  fleet.job("deadly", delay(1s), std::move(options));
  fleet.job("other", delay(1s));
  for (int i = 0; i < 14; ++i) fleet.join("n" + std::to_string(10 + i));
  fleet.run_for(60s);
  return fleet.node_ids().size();
}

TEST(Attempts, a_fire_that_ends_its_process_is_given_up_after_max_attempts) {
  Fleet fleet;
  EXPECT_EQ(nodes_left(fleet, {.max_attempts = 3, .backoff = 5s}), 11U);
  const auto starts = fleet.starts_of("deadly");
  ASSERT_GE(starts.size(), 10U);
  for (int attempt = 1; attempt <= 3; ++attempt) {
    const Start& start = starts[static_cast<std::size_t>(attempt)];
    EXPECT_EQ(start.fire, 2);
    EXPECT_EQ(start.attempt, attempt);
  }
  EXPECT_EQ(starts[4].fire, 3) << "the job goes on with its next fire";
  EXPECT_EQ(starts[4].attempt, 1);
  EXPECT_GE(starts[4].at, starts[3].at + 1000 + 5000) << "after a failure, with its backoff";
  expect_no_overlap(starts);
  const std::pair<std::string, SkipReason> told{"deadly", SkipReason::given_up};
  EXPECT_EQ(std::count(fleet.skips.begin(), fleet.skips.end(), told), 1) << "by one node, once";
  const std::string line =
      "ERROR Crashed too often: deadly (fire 2 is given up after 3 attempts, the last on " +
      starts[3].node + ")";
  EXPECT_EQ(std::count(fleet.log.begin(), fleet.log.end(), line), 1);
  EXPECT_GE(fleet.starts_of("other").size(), 50U);
}

TEST(Attempts, what_was_given_up_is_in_the_note_until_the_next_fire_is_done) {
  Fleet fleet;
  (void)nodes_left(fleet, {.max_attempts = 1, .backoff = 600s});
  const JobNote note = fleet.note("deadly");
  EXPECT_EQ(note.fire, 2);
  EXPECT_FALSE(note.started);
  EXPECT_EQ(note.failures, 1);
  ASSERT_TRUE(note.last);
  EXPECT_EQ(note.last->fire, 2);
  EXPECT_EQ(note.last->result, "crashed");
  EXPECT_EQ(note.last->detail, "given up after 1 attempt");
  EXPECT_EQ(note.last->node, fleet.starts_of("deadly").back().node);
}

TEST(Attempts, have_no_limit_unless_one_is_asked_for) {
  Fleet fleet;
  EXPECT_EQ(nodes_left(fleet, {}), 0U) << "no fire is lost";
}

TEST(Property, with_random_crashes_every_fire_is_done_and_none_has_two_live_leases) {
  const std::uint64_t first = seed_or(1);
  for (std::uint64_t seed = first; seed < first + 30; ++seed) {
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

}  // namespace
}  // namespace baton::test
