// Section 5 of the observer design lists what is logged at which level. That the lines of a
// scheduler become these lines is shown here; how a line is written, with the node in front, in
// log_test.cc.

#include <gtest/gtest.h>

#include <mutex>
#include <set>

#include "apps/warehouse/observer_log.h"
#include "baton/memory_store.h"
#include "baton/scheduler.h"
#include "schedule/job_note.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class Lines final : public SchedulerListener {
 public:
  void on_log(LogLevel level, const std::string& /*job*/, const std::string& message) override {
    const std::lock_guard lock(mutex_);
    lines_.insert(std::string(to_string(level)) + " " + warehouse::observer_message(message));
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

class ObserverLog : public ::testing::TestWithParam<Row> {
 protected:
  // A node of three types: one whose poll goes well, one that throws, and one that loses its lock.
  std::unique_ptr<Scheduler> node(const std::string& id, Lines& lines) {
    auto locks = LockClient::make(store_, {.owner = id}).value();
    auto jobs = std::make_unique<Scheduler>(
        locks, SchedulerOptions{.own_node = {.id = id}, .poll_every = 20ms, .listeners = {&lines}});
    const JobOptions observer{.group = "observer"};
    jobs->every(100ms, "order-observer-poll", observer, [](baton::Run&) {});
    jobs->every(100ms, "inventory-observer-poll", observer,
                [](baton::Run&) { throw std::runtime_error("the source is down"); });
    jobs->every(100ms, "wes-observer-poll", observer, [locks](baton::Run&) mutable {
      (void)locks.break_lock(schedule::job_name("wes-observer-poll", std::string(kDefaultRegion)),
                             {.reason = "test", .immediately = true});
    });
    EXPECT_TRUE(jobs->start());
    return jobs;
  }

 private:
  std::shared_ptr<LockStore> store_ = make_memory_store();
};

TEST_P(ObserverLog, has_the_line) {
  Lines lines;
  const auto a = node("node-a", lines);
  const auto b = node("node-b", lines);
  EXPECT_TRUE(poll_until([&] { return lines.has(GetParam().line); })) << GetParam().line;
}

INSTANTIATE_TEST_SUITE_P(
    section_5, ObserverLog,
    ::testing::Values(
        Row{"starting_scheduled_polling_cycle_at_info",
            "INFO Starting scheduled polling cycle for all observer types"},
        Row{"lock_acquired_at_info", "INFO Lock acquired for: order-observer-poll"},
        Row{"completed_polling_at_info", "INFO Completed polling for: order-observer-poll"},
        Row{"polling_cycle_completed_at_info",
            "INFO Polling cycle completed for all observer types"},
        Row{"lock_not_acquired_at_debug",
            "DEBUG Lock not acquired for: order-observer-poll (another node is polling)"},
        Row{"lock_released_at_debug", "DEBUG Lock released for: order-observer-poll"},
        Row{"error_during_polling_at_error",
            "ERROR Error during polling for: inventory-observer-poll: the source is down"},
        Row{"error_releasing_lock_at_error", "ERROR Error releasing lock for: wes-observer-poll"}),
    [](const auto& row) { return row.param.name; });

// "Interrupted while waiting for lock" is a line of the scheduler: scheduler_log_test.cc.
TEST(ObserverLogOfOtherLines, says_the_same_as_the_scheduler) {
  for (const std::string line :
       {"Interrupted while waiting for lock: order-observer-poll",
        "Lock not acquired for: order-observer-poll (it is held by something else)"}) {
    EXPECT_EQ(warehouse::observer_message(line), line);
  }
  EXPECT_EQ(warehouse::observer_message("Still running after 60000 ms: order-observer-poll"),
            "Still polling after 60000 ms: order-observer-poll");
}

}  // namespace
}  // namespace baton::test
