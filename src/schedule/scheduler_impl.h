#pragma once

// The scheduler with its threads: one that keeps time and decides (Engine), one that looks at the
// store, so that a slow look delays no start, and as many as handlers run at the moment.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "baton/scheduler.h"
#include "schedule/engine.h"
#include "schedule/handler_pool.h"
#include "schedule/job_lists.h"

namespace baton {

class Scheduler::Impl : public std::enable_shared_from_this<Scheduler::Impl> {
 public:
  Impl(LockClient locks, SchedulerOptions options);

  void remember(Error error);
  Result<void> add(std::string name, Schedule schedule, JobOptions options, Handler handler);
  Result<void> replace(std::string name, Schedule schedule, JobOptions options, Handler handler);
  bool remove(const std::string& name);
  Result<void> start();
  void stop();
  [[nodiscard]] bool inherited() const { return locks_.inherited(); }
  [[nodiscard]] std::string node_id() const;
  [[nodiscard]] std::size_t running() const;

 private:
  struct Job {
    schedule::JobSpec spec;
    Handler handler;
  };
  struct PendingAttempt {
    schedule::Attempt attempt;
    std::shared_ptr<const Job> job;  // as it was when the attempt was decided
    Instant at;
  };
  using Asked = std::shared_ptr<const PendingAttempt>;

  [[nodiscard]] schedule::Moment moment() const { return {clock_.now(), options_.wall_clock()}; }
  [[nodiscard]] Result<void> check(const schedule::JobSpec& job) const;
  [[nodiscard]] Result<std::shared_ptr<const Job>> make(std::string name, Schedule schedule,
                                                        JobOptions options, Handler handler) const;
  [[nodiscard]] bool takes_part(const schedule::JobSpec& job) const;

  void keep_time(const std::stop_token& stop);
  void keep_looking(const std::stop_token& stop);
  void look_at_fleet();
  void write_jobs();
  [[nodiscard]] schedule::JobListKey list_key() const;
  void look_at_jobs(const std::vector<std::string>& few);
  void ask(schedule::Attempt attempt, bool alone);
  void answered(const Asked& asked, Result<Lease> lease);
  void granted(const PendingAttempt& asked);

  // On a worker's thread.
  void run_attempt(const PendingAttempt& asked, Lease lease);
  void run_fire(const PendingAttempt& asked, Lease lease, std::shared_ptr<const Job> job);
  struct HandlerOutcome {
    bool failed = false;
    bool left = false;
    std::string detail;
    std::chrono::nanoseconds took{0};
  };
  HandlerOutcome call(const Job& job, const Fire& fire, Lease& lease);
  void log_release_error(const std::string& job, const Error& error);
  // A fire whose handler has returned, and whose lock is to be released with `note`.
  struct EndedFire {
    std::shared_ptr<const Job> job;
    schedule::JobNote note;
    Fire fire;
    Lease lease;
    HandlerOutcome outcome;
  };
  void finish(EndedFire ended);
  bool gather(EndedFire& ended);
  void release(std::vector<EndedFire> ended);
  void released(const EndedFire& ended, const Result<void>& released);

  // Tells the engine something, and the listeners what comes of it.
  void tell_engine(const std::function<void(schedule::Engine&)>& change);
  void publish(const std::vector<schedule::Engine::Event>& events);
  void tell(const schedule::Engine::Event& event);
  void log(LogLevel level, const std::string& job, const std::string& message);
  [[nodiscard]] bool begin_telling();  // not after stop()
  void end_telling();

  LockClient locks_;
  SchedulerOptions options_;
  Clock& clock_;
  std::optional<Node> own_node_;
  Node* node_ = nullptr;  // changed by start() alone, under mutex_, and not after engine_ is there
  const std::uint64_t number_;  // among the schedulers of this process
  std::stop_source stopping_;
  schedule::HandlerPool pool_;
  std::mutex life_;  // for the whole of start() and stop(), one of them at a time

  mutable std::mutex mutex_;
  std::condition_variable timer_signal_;
  std::condition_variable look_signal_;
  std::condition_variable idle_signal_;
  std::optional<Error> first_error_;
  std::unordered_map<std::string, std::shared_ptr<const Job>> jobs_;
  std::unique_ptr<schedule::Engine> engine_;  // from start() on
  bool changed_ = false;                      // the engine has something to do sooner
  Instant timer_until_ = Instant::max();      // when the timer wakes up, while it sleeps
  std::vector<EndedFire> ended_;              // for the timer to release, with many jobs
  Instant release_at_ = Instant::max();       // when it does
  bool gathering_ = false;                    // there is a timer that does
  bool look_ = false;
  std::vector<std::string> look_at_;
  bool poll_ = false;
  std::size_t running_ = 0;
  std::size_t telling_ = 0;  // threads that call listeners right now
  bool silent_ = false;      // stopped: nobody calls them any more
  std::jthread timer_;
  std::jthread looker_;
  std::uint64_t version_ = 0;  // of the list of jobs
  std::uint64_t written_ = 0;  // the one that the store has; only for the looker
};

}  // namespace baton
