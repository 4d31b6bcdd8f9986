#include "baton/scheduler.h"

#include "schedule/scheduler_impl.h"

namespace baton {

std::string_view to_string(FireResult result) {
  switch (result) {
    case FireResult::ok: return "ok";
    case FireResult::failed: return "failed";
    case FireResult::left: return "left";
    case FireResult::lost: return "lost";
    case FireResult::unconfirmed: return "unconfirmed";
  }
  return "unknown";
}

std::string_view to_string(SkipReason reason) {
  switch (reason) {
    case SkipReason::other_node: return "other_node";
    case SkipReason::busy: return "busy";
    case SkipReason::skipped: return "skipped";
    case SkipReason::unavailable: return "unavailable";
    case SkipReason::given_up: return "given_up";
  }
  return "unknown";
}

std::string_view to_string(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return "DEBUG";
    case LogLevel::info: return "INFO";
    case LogLevel::warning: return "WARN";
    case LogLevel::error: return "ERROR";
  }
  return "unknown";
}

Run::Run(Fire fire, Lease& lease, std::stop_token stop)
    : fire_(std::move(fire)), lease_(lease), stop_(std::move(stop)) {}

void Run::set_detail(std::string text) { detail_ = std::move(text); }

Scheduler::Scheduler(LockClient locks, SchedulerOptions options)
    : impl_(std::make_shared<Impl>(std::move(locks), std::move(options))) {}

Scheduler::~Scheduler() {
  // In a forked child its threads are not there, and its fires are the parent's.
  if (impl_->inherited()) {
    new auto(std::move(impl_));
    return;
  }
  impl_->stop();
}

Scheduler& Scheduler::every(Millis period, std::string name, JobOptions options, Handler handler) {
  auto schedule = Schedule::fixed_rate(period);
  return add_or_remember(std::move(schedule), std::move(name), std::move(options),
                         std::move(handler));
}

Scheduler& Scheduler::after_end(Millis delay, std::string name, JobOptions options,
                                Handler handler) {
  auto schedule = Schedule::fixed_delay(delay);
  return add_or_remember(std::move(schedule), std::move(name), std::move(options),
                         std::move(handler));
}

Scheduler& Scheduler::cron(std::string_view expression, std::string_view time_zone,
                           std::string name, JobOptions options, Handler handler) {
  auto schedule = Schedule::cron(expression, time_zone);
  return add_or_remember(std::move(schedule), std::move(name), std::move(options),
                         std::move(handler));
}

Scheduler& Scheduler::add_or_remember(Result<Schedule> schedule, std::string name,
                                      JobOptions options, Handler handler) {
  if (!schedule) {
    Error error = schedule.error();
    error.message = "job '" + name + "': " + error.message;
    impl_->remember(std::move(error));
    return *this;
  }
  auto added = add(std::move(name), std::move(*schedule), std::move(options), std::move(handler));
  if (!added) impl_->remember(added.error());
  return *this;
}

Result<void> Scheduler::add(std::string name, Schedule schedule, JobOptions options,
                            Handler handler) {
  return impl_->add(std::move(name), std::move(schedule), std::move(options), std::move(handler));
}

Result<void> Scheduler::replace(std::string name, Schedule schedule, JobOptions options,
                                Handler handler) {
  return impl_->replace(std::move(name), std::move(schedule), std::move(options),
                        std::move(handler));
}

bool Scheduler::remove(const std::string& name) { return impl_->remove(name); }

Result<void> Scheduler::start() { return impl_->start(); }
void Scheduler::stop() { impl_->stop(); }
std::string Scheduler::node_id() const { return impl_->node_id(); }
std::size_t Scheduler::running() const { return impl_->running(); }

}  // namespace baton
