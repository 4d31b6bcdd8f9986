// How one attempt is made: ask for the lock, run the handler, write how it went with the release.

#include <exception>
#include <utility>

#include "node/wall_time.h"
#include "schedule/scheduler_impl.h"

namespace baton {

using schedule::Attempt;
using schedule::Engine;
using schedule::JobNote;
using schedule::JobSpec;

namespace {

constexpr Millis kMarkTtl{10'000};  // for a lock that is only taken to write a note
constexpr Millis kReleaseGap{5};    // of many jobs: how long a release waits for others at most

std::string limited(const std::string& text) { return text.substr(0, schedule::kMaxDetailBytes); }

// How long a name stays taken after a release, for its at-least-for time.
Millis parked_for(const JobOptions& options, std::chrono::nanoseconds held) {
  return std::max(options.at_least_for - std::chrono::floor<Millis>(held), Millis(0));
}

}  // namespace

// Several go together, by the client's own thread; one alone is quicker on the thread that will run
// its handler.
void Scheduler::Impl::ask(Attempt attempt, bool alone) {
  std::shared_ptr<const Job> job;
  {
    const std::lock_guard lock(mutex_);
    const auto it = jobs_.find(attempt.job);
    if (it == jobs_.end()) return engine_->withdrawn(attempt.job, moment());  // removed meanwhile
    job = it->second;
  }
  const bool runs = attempt.kind == Attempt::Kind::run;
  AcquireOptions options{
      .ttl = runs ? job->spec.options.lock_ttl : kMarkTtl,
      .at_least_for = runs ? job->spec.options.at_least_for : Millis(0),
      .metadata = {{"node", attempt.note.node}, {"fire", std::to_string(attempt.note.fire)}},
      .if_ordinal_below = attempt.if_ordinal_below,
      .note = schedule::to_note(attempt.note),
      .stop = stopping_.get_token()};
  LockName name = schedule::job_name(attempt.job, options_.region);
  auto asked =
      std::make_shared<const PendingAttempt>(PendingAttempt{std::move(attempt), job, clock_.now()});
  if (!alone) {
    return locks_.acquire_async({std::move(name)}, std::move(options),
                                [self = shared_from_this(), asked](Result<Lease> lease) {
                                  self->answered(asked, std::move(lease));
                                });
  }
  pool_.submit([self = shared_from_this(), asked, name, options] {
    auto lease = self->locks_.try_acquire(name, options);
    if (!lease) return self->answered(asked, std::move(lease));
    self->granted(*asked);
    self->run_attempt(*asked, std::move(*lease));
  });
}

void Scheduler::Impl::granted(const PendingAttempt& asked) {
  const std::lock_guard lock(mutex_);
  engine_->answered(clock_.now() - asked.at);
}

// On a thread of the client: nothing here may block.
void Scheduler::Impl::answered(const Asked& asked, Result<Lease> lease) {
  if (!lease) {
    return tell_engine([&](Engine& engine) {
      engine.answered(clock_.now() - asked->at);
      engine.refused(asked->attempt.job, lease.error(), moment());
    });
  }
  granted(*asked);
  // A std::function must be copyable, a lease is not.
  auto held = std::make_shared<Lease>(std::move(*lease));
  pool_.submit([self = shared_from_this(), asked, held]() mutable {
    Lease mine = std::move(*held);
    self->run_attempt(*asked, std::move(mine));
  });
}

void Scheduler::Impl::run_attempt(const PendingAttempt& asked, Lease lease) {
  const Attempt& attempt = asked.attempt;
  const bool runs = attempt.kind == Attempt::Kind::run;
  if (runs && stopping_.stop_requested()) {
    // It has not begun: put the note back, so that another node begins it.
    const Note before = lease.note();
    const auto put_back = lease.release({.note = {.ordinal = before.ordinal, .text = before.text}});
    if (!put_back) log_release_error(attempt.job, put_back.error());
    return tell_engine([&](Engine& engine) { engine.lost(attempt.job, moment()); });
  }
  if (!runs) {
    if (const auto released = lease.release(); !released) {
      log_release_error(attempt.job, released.error());
    }
    return tell_engine(
        [&](Engine& engine) { engine.done(attempt.job, attempt.note, Millis(0), moment()); });
  }
  {
    const std::lock_guard lock(mutex_);
    ++running_;
  }
  run_fire(asked, std::move(lease), asked.job);
  const std::lock_guard lock(mutex_);
  --running_;
  idle_signal_.notify_all();
}

void Scheduler::Impl::run_fire(const PendingAttempt& asked, Lease lease,
                               std::shared_ptr<const Job> job) {
  JobNote note = asked.attempt.note;
  // Others may have tried it since we looked: the note that the grant found knows.
  if (const Note before = lease.note(); before.ordinal == note.ordinal()) {
    const int attempt = schedule::from_note(before).value_or(JobNote{}).attempt + 1;
    if (std::exchange(note.attempt, attempt) != attempt) (void)lease.set_note(to_note(note));
  }
  const schedule::Moment now = moment();
  const JobSpec& spec = job->spec;
  Fire fire{.job = spec.name,
            .group = spec.options.group.empty() ? "jobs" : spec.options.group,
            .number = note.fire,
            .due = node::from_millis(note.due),
            .attempt = note.attempt,
            .manual = note.manual,
            .node = note.node,
            .token = lease.token()};
  tell_engine([&](Engine& engine) { engine.began(fire.job, fire, now); });
  tell([&](SchedulerListener& listener) {
    listener.on_acquired(fire, now.now - asked.at, std::chrono::floor<Millis>(now.wall - fire.due));
    listener.on_log(LogLevel::info, fire.job, "Lock acquired for: " + fire.job);
  });
  auto outcome = call(*job, fire, lease);
  finish({std::move(job), std::move(note), std::move(fire), std::move(lease), std::move(outcome)});
}

Scheduler::Impl::HandlerOutcome Scheduler::Impl::call(const Job& job, const Fire& fire,
                                                      Lease& lease) {
  std::stop_source stop;
  const auto pass_on = [&stop] { stop.request_stop(); };
  const std::stop_callback on_loss(lease.lost(), pass_on);
  const std::stop_callback on_stop(stopping_.get_token(), pass_on);
  Run run(fire, lease, stop.get_token());
  HandlerOutcome outcome;
  const Instant began = clock_.now();
  try {
    Result<void> fenced;
    if (options_.fence_first) fenced = options_.fence_first(run.tokens());
    if (fenced) {
      job.handler(run);
      outcome.detail = run.detail();
    } else {
      outcome.failed = true;
      outcome.detail = "the fence: " + fenced.error().message;
    }
  } catch (const std::exception& problem) {
    outcome.failed = true;
    outcome.detail = problem.what();
  } catch (...) {
    outcome.failed = true;
    outcome.detail = "an exception that is no std::exception";
  }
  outcome.left = run.left();
  outcome.took = clock_.now() - began;
  outcome.detail = limited(outcome.detail);
  return outcome;
}

// Unless the lease was lost, nobody knows what became of it: the fire may run again.
void Scheduler::Impl::log_release_error(const std::string& job, const Error& error) {
  log(LogLevel::error, job,
      "Error releasing lock for: " + job + ": " + error.message +
          (error.code == Code::lost ? "" : " (not confirmed: it ends by its TTL at the latest)"));
}

void Scheduler::Impl::finish(EndedFire ended) {
  const schedule::Moment now = moment();
  const HandlerOutcome& outcome = ended.outcome;
  // The note goes on saying "started" of a fire that nobody runs.
  if (outcome.left) return released(ended, ended.lease.release());
  JobNote& note = ended.note;
  schedule::remember_run(note,
                         {.fire = note.fire,
                          .due = note.due,
                          .started = note.began,
                          .ended = node::to_millis(now.wall),
                          .took = std::chrono::floor<Millis>(outcome.took).count(),
                          .node = note.node,
                          .result = outcome.failed ? "failed" : "ok",
                          .detail = outcome.detail,
                          .attempt = note.attempt},
                         ended.job->spec.options.keep_runs);
  note.started = false;
  note.failures = outcome.failed ? note.failures + 1 : 0;
  note.next = node::to_millis(schedule::next_due(ended.job->spec, note));
  if (outcome.failed) {
    log(LogLevel::error, ended.fire.job, "Job failed: " + ended.fire.job + ": " + outcome.detail);
  }
  if (gather(ended)) return;
  released(ended, ended.lease.release({.note = schedule::to_note(note)}));
}

// Where there are many jobs, the timer releases what ends within a short time together.
bool Scheduler::Impl::gather(EndedFire& ended) {
  const std::lock_guard lock(mutex_);
  if (!gathering_ || !engine_->gathers()) return false;
  engine_->ended(ended.fire.job);
  ended_.push_back(std::move(ended));
  if (ended_.size() > 1) return true;
  release_at_ = clock_.now() + kReleaseGap;
  if (release_at_ < timer_until_) {
    changed_ = true;
    timer_signal_.notify_one();
  }
  return true;
}

void Scheduler::Impl::release(std::vector<EndedFire> ended) {
  for (EndedFire& one : ended) {
    auto shared = std::make_shared<EndedFire>(std::move(one));
    shared->lease.release_async(
        [self = shared_from_this(), shared](const Result<void>& result) {
          self->released(*shared, result);
        },
        schedule::to_note(shared->note));
  }
}

// On a thread of the client, or on the worker's own.
void Scheduler::Impl::released(const EndedFire& ended, const Result<void>& released) {
  const Fire& fire = ended.fire;
  const HandlerOutcome& outcome = ended.outcome;
  FireResult result = outcome.left     ? FireResult::left
                      : outcome.failed ? FireResult::failed
                                       : FireResult::ok;
  if (!released) {
    result = released.error().code == Code::lost ? FireResult::lost : FireResult::unconfirmed;
    log_release_error(fire.job, released.error());
  }
  tell([&](SchedulerListener& listener) {
    if (released) {
      if (outcome.left) {
        listener.on_log(LogLevel::info, fire.job, "Job left to another node: " + fire.job);
      } else if (!outcome.failed) {
        listener.on_log(LogLevel::info, fire.job, "Job completed: " + fire.job);
      }
      listener.on_log(LogLevel::debug, fire.job, "Lock released for: " + fire.job);
    }
    listener.on_finished(fire, result, outcome.took, outcome.detail);
  });
  tell_engine([&](Engine& engine) {
    if (!released || outcome.left) return engine.lost(fire.job, moment());
    engine.done(fire.job, ended.note, parked_for(ended.job->spec.options, outcome.took), moment());
  });
}

}  // namespace baton
