// One node with observers, on a small scale: real locks on a shared store, and its metrics.
//
//   observer_exporter STORE NODE
//
// Prints where it listens, and ends with its standard input.

#include <array>
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>

#include "baton/locks.h"
#include "observe/lock_metrics.h"
#include "observe/metrics_server.h"
#include "observe/scheduler_metrics.h"

namespace baton {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::array<const char*, 3> kTypes = {"order", "inventory", "wes"};

class Traffic {
 public:
  Traffic(LockClient locks, observe::SchedulerMetrics& scheduler)
      : locks_(std::move(locks)), scheduler_(scheduler) {}

  // Every type is tried; what another node has is left to it.
  void cycle() {
    const auto start = Clock::now();
    int locked = 0;
    for (const std::string type : kTypes) locked += poll(type) ? 1 : 0;
    scheduler_.cycle(Clock::now() - start, locked, static_cast<int>(kTypes.size()) - locked);
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + random_() % 30));
  }

  // Always more who want it than can have it.
  void queue_up() {
    auto lease = locks_.acquire({.subject = "page", .predicate = "extracting", .resources = {"1"}},
                                {.ttl = 5s, .wait = 10s});
    std::this_thread::sleep_for(3ms);
  }

  // Long enough to be renewed.
  void hold() {
    auto lease = locks_.acquire({.subject = "report", .resources = {locks_.owner()}}, {.ttl = 1s});
    std::this_thread::sleep_for(800ms);
  }

 private:
  bool poll(const std::string& type) {
    auto lease = locks_.try_acquire({.subject = "job", .resources = {type + "-observer-poll"}});
    if (!lease) {
      scheduler_.failed(type);
      return false;
    }
    scheduler_.acquired(type);
    const auto start = Clock::now();
    std::this_thread::sleep_for(std::chrono::milliseconds(2 + random_() % 8));
    const auto took = Clock::now() - start;
    if (random_() % 20 == 0) {
      scheduler_.poll_failed(type, took);
    } else {
      scheduler_.polled(type, took);
    }
    return true;
  }

  LockClient locks_;
  observe::SchedulerMetrics& scheduler_;
  std::minstd_rand random_{std::random_device{}()};  // of cycle(), which one thread calls
};

int run(const std::string& store, const std::string& node) {
  const auto metrics = std::make_shared<observe::Metrics>();
  observe::SchedulerMetrics scheduler(
      metrics, {.node = node, .types = std::vector<std::string>(kTypes.begin(), kTypes.end())});
  const auto server = observe::MetricsServer::start("127.0.0.1:0", metrics).value();
  auto locks =
      open(store, {.owner = node, .observer = std::make_shared<observe::LockMetrics>(metrics)})
          .value();
  std::printf("%d\n", server->port());
  std::fflush(stdout);
  Traffic traffic(locks, scheduler);
  std::atomic<bool> ends = false;
  const auto repeat = [&](void (Traffic::*step)()) {
    return std::jthread([&traffic, &ends, step] {
      while (!ends) (traffic.*step)();
    });
  };
  const auto cycles = repeat(&Traffic::cycle);
  const auto first = repeat(&Traffic::queue_up);
  const auto second = repeat(&Traffic::queue_up);
  const auto holder = repeat(&Traffic::hold);
  while (std::getchar() != EOF) {
  }
  ends = true;
  return 0;
}

}  // namespace
}  // namespace baton

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: observer_exporter STORE NODE\n");
    return 2;
  }
  return baton::run(argv[1], argv[2]);
}
