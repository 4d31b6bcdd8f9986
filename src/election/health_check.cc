#include "election/health_check.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace baton::election {

HealthCheck::HealthCheck(const ElectorOptions& options, Clock& clock, std::function<void()> changed)
    : options_(options), clock_(clock), changed_(std::move(changed)), fit_(!options.healthy) {}

void HealthCheck::start() {
  if (!options_.healthy) return;
  fit_ = false;
  told_ = false;
  overdue_at_.reset();
  checker_ = std::jthread([this](const std::stop_token& stop) { check_again_and_again(stop); });
  watch_ = std::jthread([this](const std::stop_token& stop) { watch_for_overdue(stop); });
}

void HealthCheck::stop() {
  checker_.request_stop();
  watch_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    signal_.notify_all();
  }
  if (checker_.joinable()) checker_.join();
  if (watch_.joinable()) watch_.join();
}

// An interval to notice and one for a check that hangs: so a sick leader begins to resign before
// its TTL is over.
Millis HealthCheck::interval() const {
  if (options_.health_interval > Millis(0)) return options_.health_interval;
  return std::max(Millis(1), options_.ttl / 3);
}

Result<void> HealthCheck::ask() const {
  try {
    return options_.healthy();
  } catch (const std::exception& problem) {
    return Error{.code = Code::unavailable, .message = problem.what()};
  } catch (...) {
    return Error{.code = Code::unavailable, .message = "an exception that is no std::exception"};
  }
}

void HealthCheck::check_again_and_again(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    overdue_at_ = clock_.now() + interval();
    signal_.notify_all();
    lock.unlock();
    const auto answer = ask();
    lock.lock();
    overdue_at_.reset();
    conclude(lock, answer);
    const Instant next = clock_.now() + interval();
    while (!stop.stop_requested() && clock_.now() < next) clock_.wait(lock, signal_, next);
  }
}

void HealthCheck::watch_for_overdue(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (overdue_at_ && *overdue_at_ <= clock_.now()) {
      overdue_at_.reset();
      conclude(lock, Error{.code = Code::unavailable,
                           .message = "the health check has not answered within " +
                                      std::to_string(interval().count()) + " ms"});
      continue;
    }
    clock_.wait(lock, signal_, overdue_at_.value_or(Instant::max()));
  }
}

// Hooks are called without the lock.
void HealthCheck::conclude(std::unique_lock<std::mutex>& lock, const Result<void>& answer) {
  const bool changed = fit_.exchange(answer.has_value()) != answer.has_value();
  const bool tell = !answer && !std::exchange(told_, true);
  if (answer) told_ = false;
  if (!changed && !tell) return;
  lock.unlock();
  if (changed) changed_();  // first: a hook that is slow must not keep a sick leader leading
  if (tell && options_.on_error) {
    Error error = answer.error();
    error.message = "not fit to lead: " + error.message;
    options_.on_error(error);
  }
  lock.lock();
}

}  // namespace baton::election
