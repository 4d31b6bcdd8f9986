// Whose turn it is, on fleets whose every millisecond the test decides.

#include <gtest/gtest.h>

#include <cmath>

#include "schedule/rank.h"
#include "unit/schedule/fleet_checks.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

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
  std::map<std::uint64_t, int> successors;
  for (std::uint64_t fire = 0; fire < 300; ++fire) {
    std::uint64_t successor = 0;
    for (const std::uint64_t node : {0U, 1U}) {  // node 2 is gone
      if (schedule::rank(node, 3, fire, 5) < schedule::rank(successor, 3, fire, 5))
        successor = node;
    }
    ++successors[successor];
  }
  EXPECT_EQ(successors[0], 150);
  EXPECT_EQ(successors[1], 150);
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

// Those of the warehouse: by their hashes two of them would always be on one of three nodes.
const std::vector<std::string> kTypes = {"inventory-observer-poll", "order-observer-poll",
                                         "wes-observer-poll"};

TEST(Turns, jobs_that_go_in_step_are_on_different_nodes) {
  for (const std::size_t nodes : {2U, 3U}) {
    Fleet fleet;
    for (const auto& type : kTypes) fleet.job(type, delay(1s));
    for (std::size_t i = 0; i < nodes; ++i) fleet.join("n" + std::to_string(i));
    fleet.run_for(60s);
    std::map<std::int64_t, std::map<std::string, int>> cycles;
    for (const Start& start : fleet.starts) ++cycles[start.fire][start.node];
    ASSERT_GE(cycles.size(), 55U);
    cycles.erase(std::prev(cycles.end()));
    for (const auto& [fire, shares] : cycles) {
      EXPECT_EQ(shares.size(), nodes) << "fire " << fire << ": no node rests";
      for (const auto& [node, count] : shares) EXPECT_LE(count, nodes == 3 ? 1 : 2) << node;
    }
  }
}

TEST(Turns, nodes_with_different_jobs_agree_whose_turn_it_is) {
  Fleet fleet;
  for (const auto* job : {"a", "b", "c", "d"}) fleet.job(job, rate(1s));
  fleet.join("old1", {"b", "d"});
  fleet.join("old2", {"b", "d"});
  fleet.run_for(5s + 500ms);
  fleet.join("new1");  // a deployment that has come half way
  fleet.run_for(2s);
  const auto before = fleet.starts.size();
  const auto asks = fleet.asks();
  fleet.run_for(60s);
  EXPECT_EQ(fleet.asks() - asks, fleet.starts.size() - before) << "no two go for one fire";
  for (const auto* job : {"b", "d"}) {
    std::vector<Start> starts;
    for (std::size_t i = before; i < fleet.starts.size(); ++i) {
      if (fleet.starts[i].job == job) starts.push_back(fleet.starts[i]);
    }
    for (const Start& start : starts) EXPECT_LE(start.at - start.due, 2) << "one of them is first";
    for (const auto& [node, count] : by_node(starts)) EXPECT_NEAR(count, 20, 1) << job << node;
  }
}

TEST(Turns, a_job_that_comes_later_gets_an_offset_that_is_free) {
  Fleet fleet;
  for (const auto* job : {"a", "b", "c", "d", "e"}) fleet.job(job, rate(1s));
  fleet.join("n1", {"b", "d"});
  fleet.run_for(2s);
  fleet.join("n2");
  fleet.run_for(2s);
  EXPECT_EQ(fleet.note("b").offset, 0);
  EXPECT_EQ(fleet.note("d").offset, 1);
  EXPECT_EQ(fleet.note("a").offset, 2);
  EXPECT_EQ(fleet.note("c").offset, 3);
  EXPECT_EQ(fleet.note("e").offset, 4);
}

TEST(Turns, a_job_without_an_offset_gets_one_with_its_next_fire) {
  const schedule::JobSpec job{.name = "a", .schedule = rate(1s), .options = {}, .hash = 7};
  schedule::JobView view{.known = true, .ordinal = 3, .note = JobNote{.fire = 1}};
  const Instant now(1000s);
  view.seen_at = view.since = now;
  const schedule::Decision decision = schedule::decide(
      job, view, {.moment = {now, node::from_millis(1'800'000'000'000)}, .offset = 5});
  ASSERT_TRUE(decision.attempt);
  EXPECT_EQ(decision.attempt->note.fire, 2);
  EXPECT_EQ(decision.attempt->note.offset, 5);
}

}  // namespace
}  // namespace baton::test
