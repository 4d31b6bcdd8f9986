// Jobs in YAML: the keys of the design, and one clear line for everything that is wrong.

#include "baton/job_config.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kDesign = R"(
scheduler:
  observer:
    fixed-delay: 30000  # 30 seconds between polls
    lock:
      ttl: 60000  # 60 seconds lock TTL

  # Specific configuration per observer type (if needed)
  order-observer:
    enabled: true
  inventory-observer:
    enabled: false
  wes-observer:
    fixed-delay: 10s
)";

TEST(JobConfig, reads_the_keys_of_the_design) {
  const auto config = JobConfig::parse(kDesign).value();
  const auto order = config.configure("order-observer-poll").value();
  ASSERT_TRUE(order.schedule);
  EXPECT_EQ(order.schedule->kind(), Schedule::Kind::fixed_delay);
  EXPECT_EQ(order.schedule->interval(), 30s);
  EXPECT_EQ(order.options.lock_ttl, 60s);
  EXPECT_TRUE(order.options.enabled);
  EXPECT_FALSE(config.configure("inventory-observer-poll").value().options.enabled);
}

TEST(JobConfig, more_words_go_before_fewer) {
  const auto config = JobConfig::parse(kDesign).value();
  const auto wes = config.configure("wes-observer-poll").value();
  EXPECT_EQ(wes.schedule->interval(), 10s);
  EXPECT_EQ(wes.options.lock_ttl, 60s) << "what it does not say itself";
  EXPECT_FALSE(config.configure("nightly-report").value().schedule);
  EXPECT_FALSE(config.configure("observers").value().schedule) << "words, not letters";
}

TEST(JobConfig, reads_every_key) {
  const auto config = JobConfig::parse(R"(
locks: {anything: goes}
scheduler:
  report:
    cron: 30 2 * * MON-FRI
    time-zone: Europe/Berlin
    jitter: 5s
    misfire: skip
    on-crash: skip
    max-attempts: 3
    nodes: [node-a, node-b]
    backoff: 1s
    max-backoff: 1m
    report-after: 10m
    lock: {ttl: 2m, try-for: 2s, at-least-for: 500}
  beat: {fixed-rate: 5s, phase: 1s}
)")
                          .value();
  const auto report = config.configure("report").value();
  EXPECT_EQ(report.schedule->text(), "30 2 * * MON-FRI Europe/Berlin");
  const JobOptions& options = report.options;
  EXPECT_EQ(options.jitter, 5s);
  EXPECT_EQ(options.misfire, Misfire::skip);
  EXPECT_EQ(options.on_crash, OnCrash::skip);
  EXPECT_EQ(options.max_attempts, 3);
  EXPECT_EQ(config.configure("beat").value().options.max_attempts, JobOptions().max_attempts);
  EXPECT_EQ(options.nodes, (std::vector<std::string>{"node-a", "node-b"}));
  EXPECT_EQ(options.backoff, 1s);
  EXPECT_EQ(options.backoff_most, 60s);
  EXPECT_EQ(options.report_after, 600s);
  EXPECT_EQ(options.lock_ttl, 120s);
  EXPECT_EQ(options.try_for, 2s);
  EXPECT_EQ(options.at_least_for, 500ms);
  EXPECT_EQ(config.configure("beat").value().schedule->text(), "every 5s");
}

struct Wrong {
  const char* what;
  const char* yaml;
  const char* message;
};

class BadJobConfig : public ::testing::TestWithParam<Wrong> {};

TEST_P(BadJobConfig, is_refused_in_one_line) {
  const auto config = JobConfig::parse(GetParam().yaml);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, Code::bad_request);
  EXPECT_EQ(config.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    All, BadJobConfig,
    ::testing::Values(
        Wrong{"unknown_key", "scheduler:\n  a:\n    fixed-dely: 5s\n",
              "line 3: unknown key 'fixed-dely'; did you mean 'fixed-delay'?"},
        Wrong{"unknown_lock_key", "scheduler:\n  a:\n    lock:\n      tll: 5s\n",
              "line 4: unknown key 'tll'; did you mean 'ttl'?"},
        Wrong{"delay_zero", "scheduler:\n  a:\n    fixed-delay: 0\n",
              "line 3: fixed-delay must be above zero, not 0"},
        Wrong{"delay_negative", "scheduler:\n  a:\n    fixed-delay: -5\n",
              "line 3: fixed-delay must be above zero, not -5"},
        Wrong{"ttl_short", "scheduler:\n  a:\n    lock:\n      ttl: 200\n",
              "line 4: ttl 200 is shorter than the margin for renewing it; give at least 500ms"},
        Wrong{"cron_never", "scheduler:\n  a:\n    cron: 0 0 31 4 *\n",
              "line 2: cron: '0 0 31 4 *' never fires: no date matches it"},
        Wrong{"twice", "scheduler:\n  a:\n    fixed-delay: 5s\n  a:\n    fixed-delay: 6s\n",
              "line 4: the key 'a' is given twice"},
        Wrong{"both", "scheduler:\n  a:\n    fixed-delay: 5s\n    cron: '@daily'\n",
              "line 2: give one of fixed-delay, fixed-rate and cron, not several"},
        Wrong{"words", "scheduler:\n  a:\n    misfire: maybe\n",
              "line 3: misfire must be run-once or skip, not 'maybe'"},
        Wrong{"crash", "scheduler:\n  a:\n    on-crash: 1\n",
              "line 3: on-crash must be rerun or skip, not '1'"},
        Wrong{"attempts_negative", "scheduler:\n  a:\n    max-attempts: -1\n",
              "line 3: max-attempts must be a number of attempts, or 0 for no limit, not '-1'"},
        Wrong{"attempts_time", "scheduler:\n  a:\n    max-attempts: 3s\n",
              "line 3: max-attempts must be a number of attempts, or 0 for no limit, not '3s'"},
        Wrong{"attempts_many", "scheduler:\n  a:\n    max-attempts: 99999999999\n",
              "line 3: max-attempts must be a number of attempts, or 0 for no limit, not "
              "'99999999999'"},
        Wrong{"enabled", "scheduler:\n  a:\n    enabled: maybe\n",
              "line 3: enabled must be true or false, not 'maybe'"},
        Wrong{"duration", "scheduler:\n  a:\n    jitter: soon\n",
              "line 3: jitter must be milliseconds or a duration such as 30s, not 'soon'"},
        Wrong{"zone", "scheduler:\n  a:\n    cron: '@daily'\n    time-zone: Mars/Base\n",
              "line 2: no time zone 'Mars/Base' on this machine; is it spelt right, and is the "
              "package tzdata installed?"},
        Wrong{"nodes", "scheduler:\n  a:\n    nodes: {}\n",
              "line 3: nodes must be a list of node ids, not a map"},
        Wrong{"list", "scheduler: [a]\n", "line 1: scheduler must be a map of jobs, not a list"}),
    [](const auto& wrong) { return std::string(wrong.param.what); });

TEST(JobConfig, a_section_for_no_job_is_misspelt) {
  const auto config =
      JobConfig::parse("scheduler:\n  ordr-observer:\n    enabled: false\n").value();
  const std::vector<std::string> jobs{"order-observer", "wes-observer"};
  const auto checked = config.check(jobs);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message,
            "line 2: section 'ordr-observer' speaks for no job; unknown job 'ordr-observer'; did "
            "you mean 'order-observer'?");
  EXPECT_TRUE(JobConfig::parse(kDesign).value().check(std::vector<std::string>{
      "order-observer-poll", "inventory-observer-poll", "wes-observer-poll"}));
}

}  // namespace
}  // namespace baton
