#pragma once

// Jobs that run on a schedule, on every replica, and on one of them each time.
//
//   baton::Scheduler jobs(locks);
//   jobs.every(30s, "import-orders", {.lock_ttl = 60s}, [&](baton::Run& run) {
//     import_orders(run);
//   });
//   auto started = jobs.start();
//
// A job is the lock lock:X:job:running:{name}; its fires are numbered, and the note of that lock
// says how far they are: ordinal 2n is "fire n started", 2n+1 "fire n done". A replica starts a
// fire only if the note still says what it has seen, in the same request that takes the lock. So
// there are never two live leases for one fire, and a replica whose timer comes late is answered
// `superseded`. docs/scheduler.md says what happens in which fault.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "baton/lease.h"
#include "baton/locks.h"
#include "baton/node.h"
#include "baton/schedule.h"

namespace baton {

// So many past runs at most are kept in the note of a job, fewer if their details are long: a note
// has 4 KiB, and each start and each end of a fire writes it.
inline constexpr std::size_t kMaxKeptRuns = 20;

// What becomes of a fire whose node died or lost the lease in the middle of it.
enum class OnCrash : std::uint8_t {
  rerun,  // it runs again, under a higher token, until it is done, or max_attempts are over
  skip,   // it is over: a fire starts at most once
};

// What becomes of fire times that passed while no node could run them.
enum class Misfire : std::uint8_t {
  run_once,  // the last of them runs, late; those before it do not
  skip,      // none of them runs; the next one does, on time
};

struct JobOptions {
  Millis lock_ttl{60'000};  // renewed while the handler runs; also how soon a crash is noticed
  Millis try_for{1'000};    // if something that is no fire holds the lock, a fire that is due waits
                            // for it; after this long on_skipped(busy) reports that, once
  Millis at_least_for{0};   // the lock stays taken so long even if the handler is quicker
  Millis jitter{0};         // each fire is late by up to so much; all replicas agree by how much
  Misfire misfire = Misfire::run_once;
  OnCrash on_crash = OnCrash::rerun;
  int max_attempts = 0;  // with rerun: starts of one fire, then it is given up; 0: no limit
  bool enabled = true;   // on this node
  std::vector<std::string> nodes;  // canary: only on nodes of these ids; empty: on all
  Millis backoff{0};               // after a failure wait at least so long, doubled each time,
  Millis backoff_most{600'000};    // up to this
  Millis report_after{0};          // a handler that runs longer is reported; 0: lock_ttl
  std::string group;               // whose cycles it counts in (on_cycle); empty: "jobs"
  std::size_t keep_runs = 0;       // in its note, for `baton job history`; at most kMaxKeptRuns
};

// One fire, as listeners see it.
struct Fire {
  std::string job;
  std::string group;
  std::int64_t number = 0;
  WallTime due{};
  int attempt = 1;      // more after a crash
  bool manual = false;  // asked for by run now
  std::string node;     // this one
  Token token = 0;
};

enum class FireResult : std::uint8_t {
  ok,
  failed,  // the handler threw; the fire is done all the same
  lost,    // the lease was lost meanwhile: another node runs the fire again (OnCrash::rerun)
  // The handler has returned or thrown, but the store did not confirm the release. If it took
  // effect, the fire is done; if not, the lock ends by its TTL and the fire runs again, as after a
  // crash.
  unconfirmed,
  left,  // see Run::leave(): the fire is not done
};
[[nodiscard]] BATON_EXPORT std::string_view to_string(FireResult result);

enum class SkipReason : std::uint8_t {
  other_node,   // another node runs it or has run it
  busy,         // something that is no fire has held the lock for try_for; the fire stays due
  skipped,      // asked for by skip next
  unavailable,  // the store could not be asked; the fire stays due
  given_up,     // it has crashed max_attempts times; told by the one node that writes so
};
[[nodiscard]] BATON_EXPORT std::string_view to_string(SkipReason reason);

// A period in which at least one fire of a group was due on this node.
struct Cycle {
  std::string group;
  std::chrono::nanoseconds duration{0};
  std::size_t locked = 0;   // fires that this node ran
  std::size_t skipped = 0;  // fires that it left to others
};

enum class LogLevel : std::uint8_t { debug, info, warning, error };
[[nodiscard]] BATON_EXPORT std::string_view to_string(LogLevel level);

// For metrics and logs. Called from threads of the scheduler, several at a time, and not any more
// when stop() has returned: be quick, do not throw, do not call stop(). Every function does nothing
// unless it is overridden.
class BATON_EXPORT SchedulerListener {
 public:
  virtual ~SchedulerListener() = default;

  // `asked` is how long the request for the lock took; `late`, how long after it was due it began.
  virtual void on_acquired(const Fire& /*fire*/, std::chrono::nanoseconds /*asked*/,
                           Millis /*late*/) {}
  virtual void on_skipped(const Fire& /*fire*/, SkipReason /*reason*/) {}
  virtual void on_finished(const Fire& /*fire*/, FireResult /*result*/,
                           std::chrono::nanoseconds /*duration*/, const std::string& /*detail*/) {}
  virtual void on_stuck(const Fire& /*fire*/, Millis /*running_for*/) {}
  virtual void on_cycle(const Cycle& /*cycle*/) {}

  // The log lines of the scheduler, each in full: "Lock acquired for: import-orders".
  virtual void on_log(LogLevel /*level*/, const std::string& /*job*/,
                      const std::string& /*message*/) {}
};

// What a handler is given. Valid only while the handler runs.
class BATON_EXPORT Run {
 public:
  Run(Fire fire, Lease& lease, std::stop_token stop);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  [[nodiscard]] const Fire& fire() const { return fire_; }
  [[nodiscard]] const std::string& job() const { return fire_.job; }
  [[nodiscard]] std::int64_t number() const { return fire_.number; }
  [[nodiscard]] WallTime due() const { return fire_.due; }
  [[nodiscard]] int attempt() const { return fire_.attempt; }
  [[nodiscard]] const std::string& node() const { return fire_.node; }

  // What baton::fence(transaction, run) asks for, first in a transaction that writes.
  [[nodiscard]] std::vector<FenceToken> tokens() const { return lease_.tokens(); }
  [[nodiscard]] Lease& lease() { return lease_; }
  [[nodiscard]] Token token() const { return lease_.token(); }

  // Fires before another node can run this job. A std::stop_callback on this or the next runs on a
  // thread that others wait for (see Lease::lost): it must neither block nor throw.
  [[nodiscard]] std::stop_token lost() const { return lease_.lost(); }

  // Fires with lost(), and when the scheduler is being stopped: end early, what is left is the
  // next fire's.
  [[nodiscard]] std::stop_token stop() const { return stop_; }

  // A few words on what was done, for `baton job show`. At most 200 bytes are kept.
  void set_detail(std::string text);
  [[nodiscard]] const std::string& detail() const { return detail_; }

  // The handler gives up without having done the fire, because the scheduler is being stopped: when
  // it has returned or thrown, its lock is released and the fire is treated as if this node had
  // died. With OnCrash::rerun it runs again at once, on another node if this one goes.
  void leave() { left_ = true; }
  [[nodiscard]] bool left() const { return left_; }

 private:
  Fire fire_;
  Lease& lease_;
  std::stop_token stop_;
  std::string detail_;
  bool left_ = false;
};

using Handler = std::function<void(Run&)>;

struct SchedulerOptions {
  Node* node = nullptr;  // must outlive the scheduler; default: one of its own
  NodeOptions own_node;  // for that
  std::string region = std::string(kDefaultRegion);
  std::size_t workers = 16;    // handlers at a time; a node with none free leaves fires to others
  Millis stop_within{10'000};  // how long stop() waits for handlers
  Millis rank_step{25};        // how much later each next node in turn goes for a fire
  Millis poll_every{500};      // how often it looks for commands (pause, run now…) and nodes

  // Runs first thing in every fire, before its handler: show the fire to the fence of the data, as
  // in
  //   .fence_first = [&](auto tokens) { return baton::fence_alone(connection, tokens); }
  // Until a node has done so, a fence that is not beside the locks does not know of it and lets a
  // node that was overtaken write. Called from several threads at a time. On an error the handler
  // does not run: it counts as a handler that threw.
  std::function<Result<void>(std::span<const FenceToken>)> fence_first;

  std::vector<SchedulerListener*> listeners;  // must outlive the scheduler
  std::function<WallTime()> wall_clock;       // default: the system's
  Clock* clock = nullptr;                     // the one of the client
};

// Thread-safe. A handler that throws has failed its fire; the next one runs all the same.
class BATON_EXPORT Scheduler {
 public:
  explicit Scheduler(LockClient locks, SchedulerOptions options = {});
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Add a job; what is wrong with it, start() says.
  Scheduler& every(Millis period, std::string name, JobOptions options, Handler handler);
  Scheduler& after_end(Millis delay, std::string name, JobOptions options, Handler handler);
  Scheduler& cron(std::string_view expression, std::string_view time_zone, std::string name,
                  JobOptions options, Handler handler);

  // The same for a schedule that is there already, such as one from YAML (job_config.h), and with
  // the answer at once. Also after start().
  Result<void> add(std::string name, Schedule schedule, JobOptions options, Handler handler);

  // Gives the job of that name another schedule, other options and another handler, from its next
  // fire on; one that runs goes on as it is. Its fires are numbered on. An error if there is none.
  Result<void> replace(std::string name, Schedule schedule, JobOptions options, Handler handler);

  // No fire of the job starts on this node any more; one that runs goes on to its end. What the
  // store knows of it stays (job_control.h has forget_job). False if there is no such job.
  bool remove(const std::string& name);

  // The first error of every(), after_end() and cron(), or that of joining as a node.
  Result<void> start();

  // Starts nothing more, asks running handlers to stop and waits for them as long as the options
  // say. What has not ended then keeps its lock until it does, or until the process ends and the
  // TTL with it. Idempotent.
  void stop();

  [[nodiscard]] std::string node_id() const;
  [[nodiscard]] std::size_t running() const;  // handlers, right now

 private:
  class Impl;
  Scheduler& add_or_remember(Result<Schedule> schedule, std::string name, JobOptions options,
                             Handler handler);
  std::shared_ptr<Impl> impl_;
};

}  // namespace baton
