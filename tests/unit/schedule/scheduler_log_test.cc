// What a scheduler logs, at which level.

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "baton/memory_store.h"
#include "baton/scheduler.h"
#include "schedule/job_note.h"
#include "support/wait.h"
#include "unit/schedule/fleet.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class Lines final : public SchedulerListener {
 public:
  void on_log(LogLevel level, const std::string& /*job*/, const std::string& message) override {
    const std::lock_guard lock(mutex_);
    lines_.insert(std::string(to_string(level)) + " " + message);
  }
  [[nodiscard]] bool has(const std::string& beginning) const {
    const std::lock_guard lock(mutex_);
    const auto found = lines_.lower_bound(beginning);
    return found != lines_.end() && found->starts_with(beginning);
  }

 private:
  mutable std::mutex mutex_;
  std::set<std::string> lines_;
};

struct Row {
  const char* name;  // of the test
  const char* line;
};

class SchedulerLog : public ::testing::TestWithParam<Row> {
 protected:
  // A node with three jobs: one that goes well, one that throws, and one that loses its lock.
  std::unique_ptr<Scheduler> node(const std::string& id, Lines& lines) {
    auto locks = LockClient::make(store_, {.owner = id}).value();
    auto jobs = std::make_unique<Scheduler>(
        locks, SchedulerOptions{.own_node = {.id = id}, .poll_every = 20ms, .listeners = {&lines}});
    const JobOptions nightly{.group = "nightly"};
    jobs->every(100ms, "import", nightly, [](baton::Run&) {});
    jobs->every(100ms, "export", nightly,
                [](baton::Run&) { throw std::runtime_error("the disk is full"); });
    jobs->every(100ms, "cleanup", nightly, [locks](baton::Run&) mutable {
      (void)locks.break_lock(schedule::job_name("cleanup", std::string(kDefaultRegion)),
                             {.reason = "test", .immediately = true});
    });
    EXPECT_TRUE(jobs->start());
    return jobs;
  }

 private:
  std::shared_ptr<LockStore> store_ = make_memory_store();
};

TEST_P(SchedulerLog, has_the_line) {
  Lines lines;
  const auto a = node("node-a", lines);
  const auto b = node("node-b", lines);
  EXPECT_TRUE(poll_until([&] { return lines.has(GetParam().line); })) << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(
    levels, SchedulerLog,
    ::testing::Values(Row{"cycle_started_at_info", "INFO Cycle started: nightly"},
                      Row{"lock_acquired_at_info", "INFO Lock acquired for: import"},
                      Row{"job_completed_at_info", "INFO Job completed: import"},
                      Row{"cycle_completed_at_info", "INFO Cycle completed: nightly"},
                      Row{"lock_not_acquired_at_debug",
                          "DEBUG Lock not acquired for: import (another node runs it)"},
                      Row{"lock_released_at_debug", "DEBUG Lock released for: import"},
                      Row{"job_failed_at_error", "ERROR Job failed: export: the disk is full"},
                      Row{"error_releasing_lock_at_error",
                          "ERROR Error releasing lock for: cleanup"}),
    [](const auto& row) { return row.param.name; });

TEST(SchedulerLogOfAWait, that_is_interrupted_is_a_line_at_warn) {
  Fleet fleet;
  fleet.job("import", Schedule::fixed_rate(1s).value());
  fleet.join("node-a");
  fleet.refusal = Code::cancelled;
  fleet.run_for(2s);
  EXPECT_NE(std::find(fleet.log.begin(), fleet.log.end(),
                      "WARN Interrupted while waiting for lock: import"),
            fleet.log.end());
  EXPECT_TRUE(fleet.starts.empty());
}

}  // namespace
}  // namespace baton::test
