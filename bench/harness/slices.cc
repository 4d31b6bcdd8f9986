#include "harness/slices.h"

#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>

#include "harness/machine.h"

namespace baton::bench {
namespace {

Slice run_here(const Step& step, std::chrono::milliseconds time) {
  const double cpu = process_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t done = 0;
  auto now = start;
  for (; now - start < time; now = std::chrono::steady_clock::now(), ++done) step();
  const std::chrono::duration<double> wall = now - start;
  return {.steps = done, .wall = wall.count(), .cpu = process_cpu_seconds() - cpu};
}

}  // namespace

Slice run_slice(const std::vector<Step>& steps, std::chrono::milliseconds time) {
  if (steps.size() == 1) return run_here(steps[0], time);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> done{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const double cpu = process_cpu_seconds();
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> threads;
    for (const Step& step : steps) {
      threads.emplace_back([&] {
        std::uint64_t count = 0;
        try {
          for (; !over.load(std::memory_order_relaxed); ++count) step();
        } catch (...) {
          const std::lock_guard lock(mutex);
          failure = std::current_exception();
        }
        done += count;
      });
    }
    std::this_thread::sleep_for(time);
    over = true;
  }
  if (failure) std::rethrow_exception(failure);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
  return {.steps = done, .wall = wall.count(), .cpu = process_cpu_seconds() - cpu};
}

Load by_threads(std::vector<Step> steps) {
  return
      [steps = std::move(steps)](std::chrono::milliseconds time) { return run_slice(steps, time); };
}

Slice& Slice::operator+=(const Slice& other) {
  steps += other.steps;
  wall += other.wall;
  cpu += other.cpu;
  return *this;
}

Pair interleave(std::chrono::milliseconds slice, const Load& ours, const Load& floor) {
  constexpr int kTurns = 10;
  Slice of_ours;
  Slice of_floor;
  for (int i = 0; i < kTurns; ++i) {
    of_ours += ours(slice / kTurns);
    of_floor += floor(slice / kTurns);
  }
  return {of_ours.per_second(), of_floor.per_second()};
}

Pairs take_turns(int slices, const std::function<Pair()>& both) {
  (void)both();
  Pairs pairs;
  for (int i = 0; i < slices; ++i) {
    const Pair pair = both();
    pairs.ours.push_back(pair.ours);
    pairs.floor.push_back(pair.floor);
    std::fprintf(stderr, "  %.4g against %.4g\n", pair.ours, pair.floor);
  }
  return pairs;
}

Pairs take_turns(int slices, const std::function<double()>& ours,
                 const std::function<double()>& floor) {
  return take_turns(slices, [&] {
    const double first = ours();
    return Pair{first, floor()};
  });
}

}  // namespace baton::bench
