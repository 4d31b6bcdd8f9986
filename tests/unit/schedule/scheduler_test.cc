// The scheduler with its threads, on a store in memory and the machine's own clock. Nothing here
// depends on how long anything takes; what depends on time is in
// schedule_*_test.cc.

#include "baton/scheduler.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <latch>
#include <map>
#include <mutex>

#include "baton/job_control.h"
#include "baton/memory_store.h"
#include "baton/observe.h"
#include "schedule/job_note.h"
#include "support/flaky_store.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

// Everything that a scheduler tells, for tests that wait for it.
class Listener final : public SchedulerListener {
 public:
  struct Finish {
    Fire fire;
    FireResult result;
    std::string detail;
  };

  void on_acquired(const Fire& fire, std::chrono::nanoseconds, Millis) override {
    const std::lock_guard lock(mutex_);
    acquired_.push_back(fire);
  }
  void on_skipped(const Fire& fire, SkipReason reason) override {
    const std::lock_guard lock(mutex_);
    skipped_.emplace_back(fire, reason);
  }
  void on_finished(const Fire& fire, FireResult result, std::chrono::nanoseconds,
                   const std::string& detail) override {
    const std::lock_guard lock(mutex_);
    finished_.push_back({fire, result, detail});
  }
  void on_stuck(const Fire&, Millis) override { ++stuck; }
  void on_log(LogLevel level, const std::string&, const std::string& message) override {
    const std::lock_guard lock(mutex_);
    log_.push_back(std::string(to_string(level)) + " " + message);
  }

  std::vector<Fire> acquired() const { return copy(acquired_); }
  std::vector<std::pair<Fire, SkipReason>> skipped() const { return copy(skipped_); }
  std::vector<Finish> finished() const { return copy(finished_); }
  bool logged(const std::string& line) const {
    const auto lines = copy(log_);
    return std::any_of(lines.begin(), lines.end(),
                       [&](const auto& l) { return l.find(line) != std::string::npos; });
  }
  std::atomic<int> stuck = 0;

 private:
  template <typename T>
  T copy(const T& what) const {
    const std::lock_guard lock(mutex_);
    return what;
  }
  mutable std::mutex mutex_;
  std::vector<Fire> acquired_;
  std::vector<std::pair<Fire, SkipReason>> skipped_;
  std::vector<Finish> finished_;
  std::vector<std::string> log_;
};

class SchedulerTest : public ::testing::Test {
 protected:
  std::shared_ptr<FlakyStore> store =
      std::make_shared<FlakyStore>(std::shared_ptr<LockStore>(make_memory_store()));
  LockClient locks = LockClient::make(store).value();
  Listener listener;

  SchedulerOptions options(const std::string& id = "n1", Listener* to = nullptr) {
    return {.own_node = {.id = id},
            .stop_within = 30s,
            .poll_every = 20ms,
            .listeners = {to != nullptr ? to : &listener}};
  }
  bool finishes(std::size_t count) {
    return poll_until([&] { return listener.finished().size() >= count; });
  }
};

TEST_F(SchedulerTest, runs_a_job_and_tells_the_handler_which_fire_it_is) {
  Scheduler jobs(locks, options());
  std::atomic<bool> right = true;
  jobs.after_end(10ms, "import", {.lock_ttl = 60s}, [&](baton::Run& run) {
    if (run.job() != "import" || run.node() != "n1" || run.attempt() != 1 || run.number() < 1 ||
        run.token() == 0 || run.lost().stop_requested() || run.stop().stop_requested() ||
        !run.lease().valid()) {
      right = false;
    }
    run.set_detail("fire " + std::to_string(run.number()));
  });
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(finishes(5));
  jobs.stop();
  EXPECT_TRUE(right);
  const auto finished = listener.finished();
  for (std::size_t i = 0; i < finished.size(); ++i) {
    EXPECT_EQ(finished[i].fire.number, static_cast<std::int64_t>(i) + 1);
    EXPECT_EQ(finished[i].result, FireResult::ok);
  }
  EXPECT_EQ(finished[0].detail, "fire 1");
  EXPECT_TRUE(listener.logged("INFO Lock acquired for: import"));
  EXPECT_TRUE(listener.logged("INFO Job completed: import"));
  EXPECT_TRUE(listener.logged("DEBUG Lock released for: import"));
  EXPECT_EQ(live_nodes(locks).value().size(), 0U) << "the node has left";
}

TEST_F(SchedulerTest, the_fence_sees_a_fire_before_its_handler_runs) {
  std::mutex mutex;
  std::vector<FenceToken> shown;
  bool refuse = false;
  SchedulerOptions fenced = options();
  fenced.fence_first = [&](std::span<const FenceToken> tokens) -> Result<void> {
    const std::lock_guard lock(mutex);
    shown.assign(tokens.begin(), tokens.end());
    if (refuse) return Error{.code = Code::fenced, .message = "somebody newer"};
    return {};
  };
  Scheduler jobs(locks, fenced);
  std::atomic<int> runs = 0;
  jobs.after_end(10ms, "a", {}, [&](baton::Run& run) {
    const std::lock_guard lock(mutex);
    EXPECT_EQ(shown, run.tokens());
    ASSERT_FALSE(shown.empty());
    EXPECT_EQ(shown[0].token, run.token());
    EXPECT_FALSE(refuse);
    refuse = true;
    ++runs;
  });
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(finishes(3));
  jobs.stop();
  EXPECT_EQ(runs, 1) << "a fire that is refused does not run";
  const auto finished = listener.finished();
  EXPECT_EQ(finished[0].result, FireResult::ok);
  EXPECT_EQ(finished[1].result, FireResult::failed);
  EXPECT_NE(finished[1].detail.find("somebody newer"), std::string::npos) << finished[1].detail;
}

TEST_F(SchedulerTest, several_schedulers_share_the_fires_and_run_none_twice) {
  std::mutex mutex;
  std::map<std::string, std::map<std::int64_t, int>> runs;
  std::map<std::string, int> nodes;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<std::unique_ptr<Scheduler>> fleet;
  for (const auto* id : {"n1", "n2", "n3"}) {
    listeners.push_back(std::make_unique<Listener>());
    fleet.push_back(std::make_unique<Scheduler>(LockClient::make(store, {.owner = id}).value(),
                                                options(id, listeners.back().get())));
    for (const auto* job : {"a", "b", "c"}) {
      fleet.back()->every(100ms, job, {}, [&](baton::Run& run) {
        const std::lock_guard lock(mutex);
        ++runs[run.job()][run.number()];
        ++nodes[run.node()];
      });
    }
    ASSERT_TRUE(fleet.back()->start());
  }
  ASSERT_TRUE(poll_until([&] {
    const std::lock_guard lock(mutex);
    return runs["a"].size() >= 15 && runs["b"].size() >= 15 && runs["c"].size() >= 15 &&
           nodes.size() == 3;
  }));
  fleet.clear();
  for (const auto& [job, fires] : runs) {
    for (const auto& [fire, times] : fires) EXPECT_EQ(times, 1) << job << " " << fire;
    EXPECT_EQ(fires.rbegin()->first, static_cast<std::int64_t>(fires.size())) << "none left out";
  }
  EXPECT_FALSE(listeners[0]->skipped().empty());
  EXPECT_EQ(listeners[0]->skipped()[0].second, SkipReason::other_node);
}

TEST_F(SchedulerTest, a_handler_that_throws_fails_its_fire_and_the_next_one_runs) {
  Scheduler jobs(locks, options());
  jobs.after_end(10ms, "job", {}, [](baton::Run& run) {
    if (run.number() == 1) throw std::runtime_error("source is down");
    if (run.number() == 2) throw 7;
  });
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(finishes(3));
  jobs.stop();
  const auto finished = listener.finished();
  EXPECT_EQ(finished[0].result, FireResult::failed);
  EXPECT_EQ(finished[0].detail, "source is down");
  EXPECT_EQ(finished[1].result, FireResult::failed);
  EXPECT_EQ(finished[2].result, FireResult::ok);
  EXPECT_TRUE(listener.logged("ERROR Job failed: job: source is down"));
}

TEST_F(SchedulerTest, a_handler_that_does_not_return_is_reported_and_the_others_go_on) {
  std::latch end(1);
  auto given = options();
  given.workers = 1;
  Scheduler jobs(locks, given);
  std::atomic<int> others = 0;
  jobs.after_end(10ms, "endless", {.report_after = 50ms}, [&](baton::Run&) { end.wait(); });
  jobs.after_end(10ms, "other", {}, [&](baton::Run&) { ++others; });
  ASSERT_TRUE(jobs.start());
  EXPECT_TRUE(poll_until([&] { return listener.stuck == 1; }));
  const int before = others;
  EXPECT_TRUE(poll_until([&] { return others >= before + 5; }));
  EXPECT_TRUE(listener.logged("ERROR Still running after"));
  end.count_down();
}

TEST_F(SchedulerTest, stop_asks_handlers_to_end_and_waits_for_them) {
  std::atomic<bool> ended = false;
  Scheduler jobs(locks, options());
  std::latch began(1);
  jobs.after_end(1h, "job", {}, [&](baton::Run& run) {
    began.count_down();
    EXPECT_TRUE(poll_until([&] { return run.stop().stop_requested(); }));
    EXPECT_FALSE(run.lost().stop_requested());
    ended = true;
  });
  ASSERT_TRUE(jobs.start());
  began.wait();
  EXPECT_EQ(jobs.running(), 1U);
  jobs.stop();
  EXPECT_TRUE(ended);
  EXPECT_EQ(jobs.running(), 0U);
  ASSERT_EQ(listener.finished().size(), 1U);
  EXPECT_EQ(listener.finished()[0].result, FireResult::ok);
}

TEST_F(SchedulerTest, many_jobs_are_released_together_and_stop_leaves_none_of_them_open) {
  std::atomic<std::size_t> most = 0;
  const auto client = LockClient::make(observed(store, [&](const StoreCall& call) {
                        const auto releases = static_cast<std::size_t>(std::count_if(
                            call.requests.begin(), call.requests.end(),
                            [](const Request& r) { return r.verb == Verb::release; }));
                        if (releases > most) most = releases;
                      })).value();
  Scheduler jobs(client, options());
  for (int i = 0; i < 80; ++i) {
    jobs.after_end(1ms, "job-" + std::to_string(i), {.lock_ttl = 60s}, [](baton::Run&) {});
  }
  ASSERT_TRUE(jobs.start());
  EXPECT_TRUE(poll_until([&] { return most > 1; }));
  EXPECT_TRUE(finishes(200));
  jobs.stop();
  EXPECT_EQ(listener.finished().size(), listener.acquired().size());
  for (const auto& finish : listener.finished()) EXPECT_EQ(finish.result, FireResult::ok);
  const auto listed = list_jobs(locks).value();
  for (const auto& job : listed) EXPECT_NE(job.state, "running") << job.name;
}

TEST_F(SchedulerTest, stop_does_not_wait_for_ever) {
  auto end = std::make_shared<std::latch>(1);
  auto gone = std::make_shared<std::latch>(1);
  auto given = options();
  given.stop_within = 10ms;
  {
    Scheduler jobs(locks, given);
    std::latch began(1);
    jobs.after_end(1h, "job", {}, [&began, end, gone](baton::Run&) {
      began.count_down();
      end->wait();
      gone->count_down();
    });
    ASSERT_TRUE(jobs.start());
    began.wait();
  }
  end->count_down();
  gone->wait();
  // The store learns how it went, but no listener: those may be gone with the scheduler.
  const LockName name = schedule::job_name("job", std::string(kDefaultRegion));
  EXPECT_TRUE(poll_until([&] { return locks.get(name)->note.ordinal == 3; }));
  EXPECT_TRUE(listener.finished().empty());
}

TEST_F(SchedulerTest, stop_returns_in_time_when_the_store_hangs) {
  auto given = options();
  given.stop_within = 100ms;
  Scheduler jobs(locks, given);
  std::latch began(1);
  jobs.after_end(1h, "job", {}, [&](baton::Run& run) {
    began.count_down();
    EXPECT_TRUE(poll_until([&] { return run.stop().stop_requested(); }));
  });
  ASSERT_TRUE(jobs.start());
  began.wait();
  store->set(FlakyStore::Line::hangs);
  auto stopped = std::async(std::launch::async, [&] { jobs.stop(); });
  EXPECT_EQ(stopped.wait_for(patience), std::future_status::ready);
  store->set(FlakyStore::Line::good);
}

TEST_F(SchedulerTest, a_fire_whose_release_was_not_confirmed_is_reported_as_that) {
  for (const auto line : {FlakyStore::Line::refuses, FlakyStore::Line::loses_replies}) {
    for (const bool throws : {false, true}) {
      Listener told;
      Scheduler jobs(locks, options("n1", &told));
      const std::string name =
          "job-" + std::to_string(static_cast<int>(line)) + (throws ? "-throws" : "");
      jobs.after_end(1h, name, {}, [&](baton::Run&) {
        store->set(line);
        if (throws) throw std::runtime_error("no");
      });
      ASSERT_TRUE(jobs.start());
      ASSERT_TRUE(poll_until([&] { return !told.finished().empty(); }));
      store->set(FlakyStore::Line::good);
      EXPECT_EQ(told.finished()[0].result, FireResult::unconfirmed) << name;
      EXPECT_TRUE(told.logged("ERROR Error releasing lock for: " + name)) << name;
      EXPECT_FALSE(told.logged("Job completed: " + name)) << name;
    }
  }
}

// For the thread sanitizer.
TEST_F(SchedulerTest, its_node_may_be_asked_for_while_it_starts_and_stops) {
  Scheduler jobs(locks, options());
  jobs.after_end(1h, "job", {}, [](baton::Run&) {});
  std::latch ready(2);
  std::jthread asks([&](const std::stop_token& stop) {
    ready.count_down();
    while (!stop.stop_requested()) {
      const std::string id = jobs.node_id();
      EXPECT_TRUE(id.empty() || id == "n1") << id;
    }
  });
  ready.arrive_and_wait();
  EXPECT_TRUE(jobs.start());
  std::jthread stops([&] { jobs.stop(); });
  jobs.stop();
  stops.join();
  EXPECT_FALSE(jobs.start()) << "it has been stopped";
  EXPECT_EQ(jobs.node_id(), "n1");
}

TEST_F(SchedulerTest, a_lost_lease_is_noticed_and_the_fire_runs_again) {
  std::atomic<int> attempts = 0;
  Scheduler jobs(locks, options());
  jobs.after_end(1h, "job", {}, [&](baton::Run& run) {
    if (++attempts > 1) return;
    ASSERT_TRUE(locks.break_lock(schedule::job_name("job", "DEFAULT"),
                                 {.reason = "test", .immediately = true}));
    EXPECT_TRUE(poll_until([&] { return run.stop().stop_requested(); }));
  });
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(finishes(2));
  const auto finished = listener.finished();
  EXPECT_EQ(finished[0].result, FireResult::lost);
  EXPECT_EQ(finished[1].result, FireResult::ok);
  EXPECT_EQ(finished[1].fire.number, finished[0].fire.number);
  EXPECT_EQ(finished[1].fire.attempt, 2);
  EXPECT_GT(finished[1].fire.token, finished[0].fire.token);
  EXPECT_TRUE(listener.logged("ERROR Error releasing lock for: job"));
}

TEST_F(SchedulerTest, goes_on_when_the_store_comes_back) {
  Scheduler jobs(locks, options());
  jobs.after_end(10ms, "job", {.lock_ttl = 2s}, [](baton::Run&) {});
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(finishes(2));
  store->set(FlakyStore::Line::refuses);
  EXPECT_TRUE(poll_until([&] {
    return listener.logged("Lock not acquired for: job (cut off)") ||
           listener.logged("does not answer");
  }));
  const auto before = listener.finished().size();
  store->set(FlakyStore::Line::good);
  EXPECT_TRUE(finishes(before + 3));
}

TEST_F(SchedulerTest, commands_reach_it_through_the_store) {
  Scheduler jobs(locks, options());
  jobs.every(1h, "job", {}, [](baton::Run& run) { run.set_detail("by hand"); });
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(poll_until([&] { return list_jobs(locks).value().size() == 1; }))
      << "known before its first run";
  auto status = show_job(locks, "job").value();
  EXPECT_EQ(status.state, "waiting");
  EXPECT_EQ(status.schedule, "every 1h");
  EXPECT_TRUE(status.next);
  EXPECT_FALSE(status.last);
  ASSERT_TRUE(command_job(locks, "job", JobCommand::pause));
  ASSERT_TRUE(command_job(locks, "job", JobCommand::run_now));
  ASSERT_TRUE(finishes(1));
  EXPECT_TRUE(listener.finished()[0].fire.manual);
  ASSERT_TRUE(poll_until([&] { return show_job(locks, "job").value().last.has_value(); }));
  status = show_job(locks, "job").value();
  EXPECT_TRUE(status.paused);
  EXPECT_EQ(status.state, "paused");
  EXPECT_EQ(status.paused_by, locks.owner());
  EXPECT_EQ(status.run_requests, 0);
  EXPECT_EQ(status.last->result, "ok");
  EXPECT_EQ(status.last->detail, "by hand");
  EXPECT_EQ(status.last->node, "n1");
  ASSERT_TRUE(command_job(locks, "job", JobCommand::resume));
  EXPECT_FALSE(show_job(locks, "job").value().paused);
  const auto unknown = command_job(locks, "jobb", JobCommand::pause);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "no scheduler has registered a job 'jobb'; did you mean 'job'?");
}

TEST_F(SchedulerTest, what_is_wrong_with_a_job_is_said_in_one_line) {
  const auto refused = [&](auto define) {
    Scheduler jobs(locks, options());
    define(jobs);
    const auto started = jobs.start();
    EXPECT_FALSE(started);
    return started ? std::string() : started.error().message;
  };
  const Handler nothing = [](baton::Run&) {};
  EXPECT_EQ(refused([&](Scheduler& s) { s.after_end(0s, "j", {}, nothing); }),
            "job 'j': a delay is above zero and at most a year, not 0 ms");
  EXPECT_EQ(refused([&](Scheduler& s) { s.every(-5s, "j", {}, nothing); }),
            "job 'j': a period is above zero and at most a year, not -5000 ms");
  EXPECT_EQ(refused([&](Scheduler& s) { s.cron("0 0 31 2 *", "UTC", "j", {}, nothing); }),
            "job 'j': cron: '0 0 31 2 *' never fires: no date matches it");
  EXPECT_EQ(refused([&](Scheduler& s) { s.every(5s, "j", {.lock_ttl = 200ms}, nothing); }),
            "job 'j': a lock TTL of 200 ms leaves no time to renew it; it is from 500 ms to 24 h "
            "here");
  EXPECT_EQ(
      refused([&](Scheduler& s) { s.every(5s, "j", {}, nothing).every(6s, "j", {}, nothing); }),
      "there are two jobs named 'j'; a name stands for one job");
  EXPECT_EQ(refused([&](Scheduler& s) { s.every(5s, "j", {}, nullptr); }),
            "job 'j' has nothing to run");
  EXPECT_EQ(refused([&](Scheduler& s) { s.every(5s, "j", {.jitter = 5s}, nothing); }),
            "job 'j': a jitter of 5000 ms is not below the period");
  EXPECT_EQ(refused([&](Scheduler& s) { s.every(5s, "j", {.max_attempts = -1}, nothing); }),
            "job 'j': max_attempts is a number of attempts, or 0 for no limit, not -1");
  EXPECT_FALSE(
      refused([&](Scheduler& s) { s.every(5s, std::string(300, 'x'), {}, nothing); }).empty());
}

TEST_F(SchedulerTest, a_store_without_notes_is_refused) {
  class Noteless final : public LockStore {
   public:
    explicit Noteless(std::shared_ptr<LockStore> inner) : inner_(std::move(inner)) {}
    Result<std::vector<Reply>> apply(std::span<const Request> batch, Deadline deadline) override {
      return inner_->apply(batch, deadline);
    }
    Result<Page<LockInfo>> find(const Query& query, Deadline deadline) override {
      return inner_->find(query, deadline);
    }
    std::unique_ptr<Watch> watch(const std::string& channel, WakeSink& sink) override {
      return inner_->watch(channel, sink);
    }
    [[nodiscard]] Capabilities capabilities() const override {
      Capabilities can = inner_->capabilities();
      can.notes = false;
      return can;
    }

   private:
    std::shared_ptr<LockStore> inner_;
  };
  Scheduler jobs(LockClient::make(std::make_shared<Noteless>(store)).value(), options());
  EXPECT_EQ(jobs.start().error().code, Code::unsupported);
}

TEST_F(SchedulerTest, a_disabled_job_and_a_canary_for_others_do_not_run_here) {
  Scheduler jobs(locks, options());
  jobs.after_end(10ms, "off", {.enabled = false}, [](baton::Run&) {});
  jobs.after_end(10ms, "elsewhere", {.nodes = {"n2"}}, [](baton::Run&) {});
  jobs.after_end(10ms, "here", {.nodes = {"n1"}}, [](baton::Run&) {});
  ASSERT_TRUE(jobs.start());
  ASSERT_TRUE(finishes(3));
  jobs.stop();
  for (const auto& finish : listener.finished()) EXPECT_EQ(finish.fire.job, "here");
}

}  // namespace
}  // namespace baton::test
