// Jobs that were removed from the configuration, and forgetting them.

#include "baton/job_control.h"

#include <gtest/gtest.h>

#include <atomic>

#include "baton/memory_store.h"
#include "baton/scheduler.h"
#include "schedule/job_lists.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class JobControl : public ::testing::Test {
 protected:
  std::shared_ptr<LockStore> store = make_memory_store();
  LockClient locks = LockClient::make(store).value();

  std::unique_ptr<Scheduler> start(const std::string& id, const std::vector<std::string>& names,
                                   const JobOptions& options = {}) {
    auto jobs =
        std::make_unique<Scheduler>(LockClient::make(store, {.owner = id}).value(),
                                    SchedulerOptions{.own_node = {.id = id}, .poll_every = 20ms});
    for (const auto& name : names) jobs->every(1h, name, options, [](baton::Run&) {});
    jobs->start().value();
    return jobs;
  }
  // "NAME STATE NODE NODE", in the order of the list.
  std::vector<std::string> listed() {
    std::vector<std::string> lines;
    const auto jobs = list_jobs(locks).value();
    for (const JobStatus& job : jobs) {
      lines.push_back(job.name + " " + job.state);
      for (const auto& node : job.nodes) lines.back() += " " + node;
    }
    return lines;
  }
  using Lines = std::vector<std::string>;
  bool lists(const Lines& lines) {
    return poll_until([&] { return listed() == lines; });
  }
};

TEST_F(JobControl, a_job_that_no_live_node_has_is_gone_and_stands_behind_the_others) {
  auto a = start("n1", {"alpha", "beta"});
  auto b = start("n2", {"beta", "gamma"});
  EXPECT_TRUE(lists({"alpha waiting n1", "beta waiting n1 n2", "gamma waiting n2"}));
  a.reset();
  EXPECT_TRUE(lists({"beta waiting n2", "gamma waiting n2", "alpha gone"}));
  const auto gone = show_job(locks, "alpha").value();
  EXPECT_EQ(gone.state, "gone");
  EXPECT_FALSE(gone.next);
  a = start("n1", {"alpha"});
  EXPECT_TRUE(lists({"alpha waiting n1", "beta waiting n2", "gamma waiting n2"})) << "it is back";
}

TEST_F(JobControl, a_job_that_is_added_or_disabled_later_is_not_gone) {
  auto jobs = start("n1", {"alpha"});
  auto other = start("n2", {"alpha", "beta"});
  EXPECT_TRUE(lists({"alpha waiting n1 n2", "beta waiting n2"}));
  jobs->add("beta", Schedule::fixed_rate(1h).value(), {.enabled = false}, [](baton::Run&) {})
      .value();
  EXPECT_TRUE(lists({"alpha waiting n1 n2", "beta waiting n1 n2"}));
  other.reset();
  EXPECT_TRUE(lists({"alpha waiting n1", "beta waiting n1"}));
}

TEST_F(JobControl, only_a_job_that_is_gone_can_be_forgotten) {
  auto a = start("n1", {"old", "kept"});
  auto b = start("n2", {"old", "kept"});
  ASSERT_TRUE(lists({"kept waiting n1 n2", "old waiting n1 n2"}));
  const auto refused = forget_job(locks, "old");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::busy);
  EXPECT_EQ(refused.error().message,
            "job 'old' is on the live node n1 and 1 more; remove it from the configuration of all "
            "nodes first");
  ASSERT_TRUE(command_job(locks, "old", JobCommand::pause));
  a.reset();
  b = start("n3", {"kept"});
  ASSERT_TRUE(lists({"kept waiting n3", "old gone"}));
  EXPECT_TRUE(forget_job(locks, "old"));
  EXPECT_EQ(listed(), (Lines{"kept waiting n3"}));
  EXPECT_EQ(forget_job(locks, "old").error().code, Code::bad_request) << "there is none any more";
  a = start("n1", {"old"});
  EXPECT_TRUE(lists({"kept waiting n3", "old waiting n1"})) << "the pause is forgotten with it";
}

TEST_F(JobControl, a_job_whose_lock_is_held_is_not_gone) {
  auto a = start("n1", {"old"});
  ASSERT_TRUE(lists({"old waiting n1"}));
  a.reset();
  ASSERT_TRUE(lists({"old gone"}));
  auto lease = locks.acquire({.subject = "job", .predicate = "running", .resources = {"old"}});
  ASSERT_TRUE(lease);
  EXPECT_EQ(listed(), (Lines{"old waiting"}));
}

TEST_F(JobControl, two_schedulers_on_one_node_have_their_jobs_both) {
  auto node = Node::join(locks, {.id = "n1"}).value();
  const auto scheduler = [&](const std::string& name) {
    auto jobs =
        std::make_unique<Scheduler>(locks, SchedulerOptions{.node = &node, .poll_every = 20ms});
    jobs->every(1h, name, {}, [](baton::Run&) {});
    jobs->start().value();
    return jobs;
  };
  auto one = scheduler("alpha");
  auto two = scheduler("beta");
  EXPECT_TRUE(lists({"alpha waiting n1", "beta waiting n1"}));
  one.reset();
  EXPECT_TRUE(lists({"beta waiting n1", "alpha gone"}));
}

TEST_F(JobControl, a_list_is_as_long_as_it_must_be_and_a_shorter_one_replaces_it_whole) {
  std::vector<std::string> names;
  for (int i = 0; i < 500; ++i) names.push_back(std::string(40, 'x') + "\"" + std::to_string(i));
  const auto node = Node::join(locks, {.id = "n1"}).value();
  const schedule::JobListKey key{.region = "DEFAULT", .node = "n1", .scheduler = 1};
  ASSERT_TRUE(schedule::write_job_list(locks, key, node.started(), names));
  EXPECT_EQ(schedule::find_job_nodes(locks, "DEFAULT").value().size(), names.size());
  ASSERT_TRUE(schedule::write_job_list(locks, key, node.started(), {"one"}));
  EXPECT_EQ(schedule::find_job_nodes(locks, "DEFAULT").value(),
            (schedule::JobNodes{{"one", {"n1"}}}));
  ASSERT_TRUE(schedule::write_job_list(locks, key, node.started() - 60s, {"one"}));
  EXPECT_TRUE(schedule::find_job_nodes(locks, "DEFAULT").value().empty())
      << "of an earlier process of that name";
  schedule::clear_job_list(locks, key);
  Query query;
  query.subject = "node";
  query.idle = true;
  EXPECT_EQ(locks.find(query).value().items.size(), 1U) << "the node itself";
}

TEST_F(JobControl, a_list_is_forgotten_a_day_after_its_node_has_died_and_not_before) {
  const auto wall = std::make_shared<std::atomic<WallTime>>(WallTime(1'800'000'000s));
  const auto join = [&](const std::string& id) {
    return Node::join(locks, {.id = id, .wall_clock = [wall] { return wall->load(); }}).value();
  };
  const auto list_of = [&](const std::string& id) {
    return locks.get({.subject = "node", .resources = {id, "jobs", "1", "0"}}).value().note.text;
  };
  const auto live = join("a");
  for (const auto* id : {"a", "b"}) {
    ASSERT_TRUE(schedule::write_job_list(locks, {.region = "DEFAULT", .node = id, .scheduler = 1},
                                         live.started(), {"one"}));
  }
  *wall = wall->load() + 25h;
  const auto later = join("c");
  EXPECT_TRUE(poll_until([&] { return list_of("b").empty(); })) << "no node b is there";
  EXPECT_EQ(list_of("a"), "[\"one\"]");
}

}  // namespace
}  // namespace baton::test
