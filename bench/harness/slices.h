#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

namespace baton::bench {

struct SliceOptions {
  int slices = 7;
  std::chrono::milliseconds slice{1000};
};

// One unit of work, done again and again by one thread.
using Step = std::function<void()>;

struct Slice {
  std::uint64_t steps = 0;
  double wall = 0;  // seconds
  double cpu = 0;   // seconds of this process

  [[nodiscard]] double per_second() const { return static_cast<double>(steps) / wall; }
  [[nodiscard]] double per_cpu_second() const { return static_cast<double>(steps) / cpu; }
  Slice& operator+=(const Slice& other);
};

// Works for this long and tells what was done. Throws what its work throws.
using Load = std::function<Slice(std::chrono::milliseconds)>;

// Repeats every step on a thread of its own, a lone one on this thread.
[[nodiscard]] Slice run_slice(const std::vector<Step>& steps, std::chrono::milliseconds time);
[[nodiscard]] Load by_threads(std::vector<Step> steps);

// Figures of ours and of its floor, taken in turns, so that what else the machine does meets both.
struct Pairs {
  std::vector<double> ours;
  std::vector<double> floor;
};

struct Pair {
  double ours = 0;
  double floor = 0;
};

// The steps a second of a slice of each, in many short turns: a machine's speed changes within a
// second. A lone caller and its floor share a thread: a new one is placed among the processors
// anew, and that decides what a round trip takes.
[[nodiscard]] Pair interleave(std::chrono::milliseconds slice, const Load& ours, const Load& floor);

// One unmeasured turn each first: connections, caches, first plans. Tells every turn on standard
// error.
[[nodiscard]] Pairs take_turns(int slices, const std::function<Pair()>& both);
[[nodiscard]] Pairs take_turns(int slices, const std::function<double()>& ours,
                               const std::function<double()>& floor);

}  // namespace baton::bench
