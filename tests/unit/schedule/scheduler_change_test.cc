// Jobs that come, change and go while the scheduler runs, runs that are left to others, and the
// runs that are kept.

#include "baton/scheduler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "baton/job_control.h"
#include "baton/memory_store.h"
#include "schedule/job_note.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

Schedule after_end(Millis delay) { return Schedule::fixed_delay(delay).value(); }

class SchedulerChanges : public ::testing::Test {
 protected:
  LockClient locks = LockClient::make(std::shared_ptr<LockStore>(make_memory_store())).value();
  Scheduler jobs{locks, {.own_node = {.id = "n1"}, .stop_within = 30s, .poll_every = 20ms}};

  static Handler counting(std::atomic<int>& count) {
    return [&count](baton::Run&) { ++count; };
  }
  static bool goes_on(const std::atomic<int>& count) {
    const int before = count;
    return poll_until([&] { return count > before + 2; });
  }
};

TEST_F(SchedulerChanges, a_job_that_was_removed_starts_no_fire_and_goes_on_when_it_is_added_again) {
  std::atomic<int> first = 0;
  std::atomic<int> other = 0;
  ASSERT_TRUE(jobs.add("first", after_end(5ms), {}, counting(first)));
  ASSERT_TRUE(jobs.add("other", after_end(5ms), {}, counting(other)));
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(goes_on(first));
  EXPECT_TRUE(jobs.remove("first"));
  EXPECT_FALSE(jobs.remove("first"));
  // One that runs goes on to its end; the job is not on the list of the node any more.
  ASSERT_TRUE(poll_until([&] { return show_job(locks, "first")->state == "gone"; }));
  const int after = first;
  const std::int64_t fire = show_job(locks, "first")->last->fire;
  ASSERT_TRUE(goes_on(other));
  EXPECT_EQ(first, after);
  ASSERT_TRUE(jobs.add("first", after_end(5ms), {}, counting(first)));
  ASSERT_TRUE(goes_on(first));
  EXPECT_GT(show_job(locks, "first")->last->fire, fire);
}

TEST_F(SchedulerChanges, a_job_that_was_replaced_while_it_runs_is_another_from_its_next_fire_on) {
  std::latch begun(1);
  std::atomic<bool> end = false;
  std::atomic<int> old = 0;
  std::atomic<int> fresh = 0;
  ASSERT_TRUE(jobs.add("job", after_end(1h), {}, [&](baton::Run&) {
    if (old == 0) begun.count_down();
    EXPECT_TRUE(poll_until([&] { return end.load(); }));
    ++old;
  }));
  ASSERT_TRUE(jobs.start());
  begun.wait();
  ASSERT_TRUE(jobs.replace("job", after_end(5ms), {}, counting(fresh)));
  EXPECT_EQ(fresh, 0);
  end = true;
  EXPECT_TRUE(goes_on(fresh));
  EXPECT_EQ(old, 1);
  EXPECT_EQ(jobs.replace("none", after_end(5ms), {}, counting(fresh)).error().code,
            Code::bad_request);
}

TEST_F(SchedulerChanges, a_job_that_is_disabled_and_enabled_again_is_run_again) {
  std::atomic<int> count = 0;
  ASSERT_TRUE(jobs.add("job", after_end(5ms), {}, counting(count)));
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(goes_on(count));
  ASSERT_TRUE(jobs.replace("job", after_end(5ms), {.enabled = false}, counting(count)));
  ASSERT_TRUE(poll_until([&] { return jobs.running() == 0; }));
  ASSERT_TRUE(jobs.replace("job", after_end(5ms), {}, counting(count)));
  EXPECT_TRUE(goes_on(count));
}

TEST_F(SchedulerChanges, a_job_that_is_removed_while_it_runs_ends_first) {
  std::latch begun(1);
  std::atomic<bool> end = false;
  std::atomic<int> count = 0;
  ASSERT_TRUE(jobs.add("job", after_end(5ms), {}, [&](baton::Run&) {
    if (count++ == 0) begun.count_down();
    EXPECT_TRUE(poll_until([&] { return end.load(); }));
  }));
  ASSERT_TRUE(jobs.start());
  begun.wait();
  EXPECT_TRUE(jobs.remove("job"));
  EXPECT_EQ(jobs.running(), 1U);
  end = true;
  ASSERT_TRUE(poll_until([&] { return jobs.running() == 0; }));
  EXPECT_TRUE(poll_until([&] {
    const auto status = show_job(locks, "job");
    return status && status->state == "gone" && status->last && status->last->result == "ok";
  }));
  EXPECT_EQ(count, 1);
}

// For the thread sanitizer, and for what the engine remembers of jobs that are gone.
TEST_F(SchedulerChanges, jobs_come_and_go_from_several_threads_while_fires_run) {
  std::atomic<int> count = 0;
  ASSERT_TRUE(jobs.start());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        const std::string name = "job-" + std::to_string(i);
        for (int round = 0; round < 40; ++round) {
          EXPECT_TRUE(jobs.add(name, after_end(1ms), {}, counting(count)));
          if (round % 3 == 0) {
            EXPECT_TRUE(goes_on(count));
          }
          EXPECT_TRUE(jobs.replace(name, after_end(2ms), {.keep_runs = 3}, counting(count)));
          EXPECT_TRUE(jobs.remove(name));
        }
      });
    }
  }
  ASSERT_TRUE(poll_until([&] { return jobs.running() == 0; }));
  ASSERT_TRUE(jobs.add("last", after_end(1ms), {}, counting(count)));
  EXPECT_TRUE(goes_on(count));
}

TEST_F(SchedulerChanges, a_fire_that_its_handler_leaves_runs_again_on_another_node) {
  std::latch begun(1);
  ASSERT_TRUE(jobs.add("job", after_end(1h), {.lock_ttl = 1h}, [&](baton::Run& run) {
    begun.count_down();
    EXPECT_TRUE(poll_until([&] { return run.stop().stop_requested(); }));
    run.leave();
  }));
  ASSERT_TRUE(jobs.start());
  begun.wait();
  std::atomic<int> attempt = 0;
  Scheduler other(locks, {.own_node = {.id = "n2"}, .poll_every = 20ms});
  ASSERT_TRUE(other.add("job", after_end(1h), {.lock_ttl = 1h}, [&](baton::Run& run) {
    EXPECT_EQ(run.number(), 1);
    attempt = run.attempt();
  }));
  ASSERT_TRUE(other.start());
  jobs.stop();
  EXPECT_TRUE(poll_until([&] { return attempt == 2; }));
}

TEST_F(SchedulerChanges, the_last_runs_are_kept_if_they_are_asked_for) {
  std::atomic<int> count = 0;
  ASSERT_TRUE(jobs.add("kept", after_end(1ms), {.keep_runs = 4}, [&](baton::Run& run) {
    if (run.number() == 9) throw std::runtime_error("fire nine");
    ++count;
  }));
  ASSERT_TRUE(jobs.add("not-kept", after_end(1ms), {}, counting(count)));
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(poll_until([&] {
    const auto kept = show_job(locks, "kept");
    return kept && kept->last && kept->last->fire >= 10;
  }));
  ASSERT_TRUE(jobs.remove("kept"));
  ASSERT_TRUE(poll_until([&] { return show_job(locks, "kept")->state == "gone"; }));
  const auto kept = show_job(locks, "kept");
  ASSERT_EQ(kept->past.size(), 3U);
  for (std::size_t i = 0; i < kept->past.size(); ++i) {
    EXPECT_EQ(kept->past[i].fire, kept->last->fire - 1 - static_cast<std::int64_t>(i));
    EXPECT_EQ(kept->past[i].node, "n1");
    if (kept->past[i].fire == 9) {
      EXPECT_EQ(kept->past[i].result, "failed");
      EXPECT_EQ(kept->past[i].detail, "fire nine");
    }
  }
  const auto not_kept = show_job(locks, "not-kept");
  ASSERT_TRUE(not_kept && not_kept->last);
  EXPECT_TRUE(not_kept->past.empty());
  EXPECT_FALSE(jobs.add("too-many", after_end(1s), {.keep_runs = 21}, counting(count)));
}

TEST(JobNotes, keep_as_many_runs_as_a_note_has_room_for) {
  schedule::JobNote note{.fire = 100, .node = std::string(200, 'n')};
  for (int i = 0; i < 30; ++i) {
    schedule::remember_run(note,
                           {.fire = i,
                            .due = 1'700'000'000'000,
                            .started = 1'700'000'000'005,
                            .ended = 1'700'000'000'105,
                            .took = 100,
                            .node = std::string(200, 'n'),
                            .result = "failed",
                            .detail = std::string(200, '"'),
                            .attempt = 2},
                           kMaxKeptRuns);
  }
  EXPECT_EQ(note.past.size(), kMaxKeptRuns - 1);
  const auto written = schedule::to_note(note);
  EXPECT_LE(written.text->size(), kMaxNoteBytes);
  EXPECT_GT(written.text->size(), kMaxNoteBytes - 500);
  const auto read = schedule::from_note({.ordinal = *written.ordinal, .text = *written.text});
  ASSERT_TRUE(read && read->last);
  ASSERT_GT(read->past.size(), 5U);
  EXPECT_EQ(read->last->fire, 29);
  for (std::size_t i = 0; i < read->past.size(); ++i) EXPECT_EQ(read->past[i], note.past[i]);
}

TEST(JobNotes, runs_that_somebody_else_wrote_are_left_out) {
  for (const char* past : {"1", "{}", "[1]", "[[1,2,3]]", "[[1,2,3,4,5,6]]",
                           "[[1,9007199254740993000,3,4,\"n\",\"ok\"]]",
                           "[[1,2,3,4,\"n\",\"ok\",7]]", "[[1,2,3,4,\"n\",\"ok\",\"\",\"x\"]]"}) {
    const auto note =
        schedule::from_note({.ordinal = 5, .text = "{\"past\":" + std::string(past) + "}"});
    ASSERT_TRUE(note) << past;
    EXPECT_TRUE(note->past.empty()) << past;
  }
}

}  // namespace
}  // namespace baton::test
