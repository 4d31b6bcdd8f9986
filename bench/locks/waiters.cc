// One of the processes that wait in the hand-over row:
//
//   bench_locks waiters URL COUNT
//
// For every line on standard input, waits COUNT times at once for the lock `baton`, holds it for an
// instant and gives it on; then writes what happened, a line an event, and `done`:
//   G <boot time ns> <token>      granted
//   R <boot time ns> <token>      about to be released

#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <queue>

#include "locks/rows.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

struct Event {
  char kind;
  Instant at;
  Token token;
};

// Callbacks of the client must not block, and a release does: they leave the lease here.
class Granted {
 public:
  void push(Result<Lease> lease, Instant at) {
    const std::lock_guard lock(mutex_);
    leases_.emplace(std::move(lease), at);
    signal_.notify_one();
  }
  std::pair<Result<Lease>, Instant> pop() {
    std::unique_lock lock(mutex_);
    signal_.wait(lock, [&] { return !leases_.empty(); });
    auto first = std::move(leases_.front());
    leases_.pop();
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable signal_;
  std::queue<std::pair<Result<Lease>, Instant>> leases_;
};

std::vector<Event> one_round(LockClient& locks, int count) {
  std::vector<Event> events;
  Granted granted;
  for (int i = 0; i < count; ++i) {
    locks.acquire_async({{.subject = "baton"}}, {.ttl = 30s, .wait = 300s},
                        [&granted](Result<Lease> lease) {
                          const Instant at = BootClock::now();
                          granted.push(std::move(lease), at);
                        });
  }
  for (int i = 0; i < count; ++i) {
    auto [result, at] = granted.pop();
    Lease lease = std::move(result).value();
    events.push_back({'G', at, lease.token()});
    events.push_back({'R', BootClock::now(), lease.token()});
    lease.release().value();
  }
  return events;
}

}  // namespace

int run_waiters(const std::vector<std::string>& words) {
  LockClient locks = open_or_throw(words.at(0));
  const int count = std::stoi(words.at(1));
  std::puts("ready");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    for (const Event& event : one_round(locks, count)) {
      std::printf("%c %lld %llu\n", event.kind,
                  static_cast<long long>(event.at.time_since_epoch().count()),
                  static_cast<unsigned long long>(event.token));
    }
    std::printf("done %s\n", line.c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace baton::bench
