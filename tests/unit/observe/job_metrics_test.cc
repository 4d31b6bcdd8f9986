#include "baton/job_metrics.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "baton/memory_store.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::observe {
namespace {

using namespace std::chrono_literals;
using test::poll_until;

class JobMetricsTest : public ::testing::Test {
 protected:
  // The value of one series; -1 if it is not there.
  [[nodiscard]] double value(const std::string& series) const {
    const std::string text = "\n" + metrics->text();
    const auto found = text.find("\nbaton_job_" + series + " ");
    return found == std::string::npos ? -1 : std::atof(text.c_str() + text.find(' ', found));
  }

  std::shared_ptr<Metrics> metrics = std::make_shared<Metrics>();
  JobMetrics jobs{metrics, {.jobs = {"import"}}};
  const Fire fire{.job = "import", .group = "nightly"};
};

TEST_F(JobMetricsTest, a_job_that_has_not_run_is_shown_as_0) {
  EXPECT_EQ(value(R"(starts_total{job_name="import"})"), 0);
  EXPECT_EQ(value(R"(runs_total{job_name="import",result="failed"})"), 0);
  EXPECT_EQ(value(R"(skips_total{job_name="import",reason="given_up"})"), 0);
  EXPECT_EQ(value(R"(stuck_total{job_name="import"})"), 0);
  EXPECT_EQ(value(R"(starts_total{job_name="export"})"), -1);
}

TEST_F(JobMetricsTest, a_run_is_counted_from_its_start_to_its_result) {
  jobs.on_acquired(fire, 3ms, 40ms);
  EXPECT_EQ(value(R"(starts_total{job_name="import"})"), 1);
  EXPECT_EQ(value(R"(running{job_name="import"})"), 1);
  EXPECT_EQ(value(R"(start_delay_seconds_bucket{job_name="import",le="0.05"})"), 1);
  EXPECT_EQ(value(R"(start_delay_seconds_bucket{job_name="import",le="0.02"})"), 0);
  jobs.on_stuck(fire, 60s);
  EXPECT_EQ(value(R"(stuck_total{job_name="import"})"), 1);
  jobs.on_finished(fire, FireResult::ok, 70s, "");
  EXPECT_EQ(value(R"(running{job_name="import"})"), 0);
  EXPECT_EQ(value(R"(runs_total{job_name="import",result="ok"})"), 1);
  EXPECT_EQ(value(R"(run_duration_seconds_sum{job_name="import"})"), 70);
}

TEST_F(JobMetricsTest, a_fire_that_starts_early_has_no_delay) {
  jobs.on_acquired(fire, 3ms, -2000ms);
  EXPECT_EQ(value(R"(start_delay_seconds_sum{job_name="import"})"), 0);
  EXPECT_EQ(value(R"(start_delay_seconds_count{job_name="import"})"), 1);
}

TEST_F(JobMetricsTest, every_result_and_every_reason_has_its_own_series) {
  for (const FireResult result : {FireResult::ok, FireResult::failed, FireResult::lost,
                                  FireResult::unconfirmed, FireResult::left}) {
    jobs.on_finished(fire, result, 1ms, "");
    EXPECT_EQ(
        value(R"(runs_total{job_name="import",result=")" + std::string(to_string(result)) + "\"}"),
        1);
  }
  for (const SkipReason reason : {SkipReason::other_node, SkipReason::busy, SkipReason::skipped,
                                  SkipReason::unavailable, SkipReason::given_up}) {
    jobs.on_skipped(fire, reason);
    EXPECT_EQ(
        value(R"(skips_total{job_name="import",reason=")" + std::string(to_string(reason)) + "\"}"),
        1);
  }
}

TEST_F(JobMetricsTest, a_cycle_shows_what_this_node_started_and_skipped) {
  jobs.on_cycle({.group = "nightly", .duration = 2s, .locked = 2, .skipped = 1});
  jobs.on_cycle({.group = "nightly", .duration = 2s, .locked = 1, .skipped = 3});
  EXPECT_EQ(value(R"(cycle_duration_seconds_count{group="nightly"})"), 2);
  EXPECT_EQ(value(R"(cycle_fires{action="started",group="nightly"})"), 1);
  EXPECT_EQ(value(R"(cycle_fires{action="skipped",group="nightly"})"), 3);
}

TEST_F(JobMetricsTest, jobs_beyond_the_bound_share_one_series) {
  for (int i = 0; i < 1000; ++i) jobs.on_acquired({.job = "job" + std::to_string(i)}, 0ms, 0ms);
  EXPECT_EQ(value(R"(starts_total{job_name="job0"})"), 1);
  EXPECT_EQ(value(R"(starts_total{job_name="other"})"), 1001 - JobMetrics::kMaxJobs);
  EXPECT_EQ(metrics->text().find("job999"), std::string::npos);
}

TEST_F(JobMetricsTest, a_scheduler_that_has_it_as_a_listener_is_counted) {
  auto locks = LockClient::make(make_memory_store(), {.owner = "n1"}).value();
  Scheduler scheduler(locks, {.own_node = {.id = "n1"}, .listeners = {&jobs}});
  scheduler.after_end(10ms, "import", {.group = "nightly"}, [](baton::Run&) {});
  scheduler.after_end(10ms, "export", {},
                      [](baton::Run&) { throw std::runtime_error("the disk is full"); });
  ASSERT_TRUE(scheduler.start());
  EXPECT_TRUE(poll_until([&] {
    return value(R"(runs_total{job_name="import",result="ok"})") >= 2 &&
           value(R"(runs_total{job_name="export",result="failed"})") >= 2 &&
           value(R"(cycle_duration_seconds_count{group="nightly"})") >= 2;
  }));
  scheduler.stop();
}

TEST_F(JobMetricsTest, promtool_finds_nothing_wrong_with_the_names) {
  jobs.on_acquired(fire, 3ms, 40ms);
  jobs.on_finished(fire, FireResult::ok, 1ms, "");
  jobs.on_cycle({.group = "nightly", .duration = 2s, .locked = 2, .skipped = 1});
  const test::TempDir dir("job-metrics");
  const std::string file = (dir / "metrics.txt").string();
  std::ofstream(file) << metrics->text();
  const auto checked = test::run({.argv = {"sh", "-c", "promtool check metrics < \"$0\"", file}});
  EXPECT_TRUE(checked.status.success()) << checked.out << checked.err;
  EXPECT_EQ(checked.out + checked.err, "");
}

}  // namespace
}  // namespace baton::observe
