#include "stores/lock_steps.h"

#include <stdexcept>

#include "stores/paired_samples.h"
#include "support/wait.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

const LockName kBaton{.subject = "baton"};

}  // namespace

double FreshNames::acquire() {
  const double begin = milliseconds_now();
  auto lease = locks_.acquire({.subject = "n", .resources = {std::to_string(++name_)}}, {}).value();
  const double took = milliseconds_now() - begin;
  lease.release().value();
  return took;
}

double Relay::hand_over() {
  auto held = first_.acquire(kBaton, {.wait = 10s}).value();
  {
    const std::lock_guard lock(mutex_);
    granted_at_ = 0;
  }
  second_.acquire_async({kBaton}, {.wait = 30s}, [this](Result<Lease> lease) {
    const std::lock_guard lock(mutex_);
    granted_at_ = milliseconds_now();
    lease_ = std::move(lease);
    signal_.notify_all();
  });
  const bool waits =
      test::poll_until([&] { return first_.get(kBaton).value().waiting == 1; }, 10s, 1ms);
  if (!waits) throw std::runtime_error("the waiter does not queue up");
  const double begin = milliseconds_now();
  held.release().value();
  std::unique_lock lock(mutex_);
  if (!signal_.wait_for(lock, 30s, [&] { return granted_at_ != 0; }) || !*lease_) {
    throw std::runtime_error("the lock was not handed over");
  }
  const double took = granted_at_ - begin;
  Lease passed = std::move(**lease_);
  lock.unlock();
  passed.release().value();
  return took;
}

}  // namespace baton::bench
