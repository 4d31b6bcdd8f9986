#include "locks/callers.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "harness/machine.h"

namespace baton::bench {
namespace {

// Callers of one slice, each of which begins its next pair when the last one has ended.
class Callbacks {
 public:
  Callbacks(LockClient locks, int count, int names_each) : locks_(std::move(locks)) {
    for (int caller = 0; caller < count; ++caller) {
      Caller& made = callers_.emplace_back();
      for (int i = 0; i < names_each; ++i) made.names.push_back(bench_name(caller, i));
    }
  }

  Slice run(std::chrono::milliseconds time) {
    over_ = false;
    done_ = 0;
    running_ = callers_.size();
    const double cpu = process_cpu_seconds();
    const auto start = std::chrono::steady_clock::now();
    for (Caller& caller : callers_) begin(caller);
    std::this_thread::sleep_for(time);
    over_ = true;
    std::unique_lock lock(mutex_);
    all_ended_.wait(lock, [&] { return running_ == 0; });
    if (!failure_.empty()) throw std::runtime_error(failure_);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    return {.steps = done_, .wall = wall.count(), .cpu = process_cpu_seconds() - cpu};
  }

 private:
  struct Caller {
    std::vector<LockName> names;
    std::size_t next = 0;
  };

  void begin(Caller& caller) {
    if (over_.load(std::memory_order_relaxed)) return end({});
    locks_.acquire_async({caller.names[caller.next++ % caller.names.size()]}, {},
                         [this, &caller](Result<Lease> lease) {
                           if (!lease) return end(lease.error().message);
                           lease->release_async([this, &caller](const Result<void>& released) {
                             if (!released) return end(released.error().message);
                             done_.fetch_add(1, std::memory_order_relaxed);
                             begin(caller);
                           });
                         });
  }
  void end(const std::string& failure) {
    const std::lock_guard lock(mutex_);
    if (!failure.empty()) failure_ = failure;
    if (--running_ == 0) all_ended_.notify_all();
  }

  LockClient locks_;
  std::vector<Caller> callers_;
  std::atomic<bool> over_{false};
  std::atomic<std::uint64_t> done_{0};
  std::mutex mutex_;
  std::condition_variable all_ended_;
  std::size_t running_ = 0;
  std::string failure_;
};

}  // namespace

LockName bench_name(int caller, int name) {
  return {.subject = "bench", .resources = {std::to_string(caller), std::to_string(name)}};
}

std::vector<Step> callers(const LockClient& locks, int count, int names_each) {
  std::vector<Step> steps;
  for (int caller = 0; caller < count; ++caller) {
    std::vector<LockName> names;
    for (int i = 0; i < names_each; ++i) names.push_back(bench_name(caller, i));
    steps.emplace_back([client = locks, names, next = std::size_t{0}]() mutable {
      auto lease = client.acquire(names[next++ % names.size()]).value();
      lease.release().value();
    });
  }
  return steps;
}

Load callers_by_callback(const LockClient& locks, int count, int names_each) {
  return [all = std::make_shared<Callbacks>(locks, count, names_each)](
             std::chrono::milliseconds time) { return all->run(time); };
}

}  // namespace baton::bench
