// Acquire and release on Redis, again and again: how many pairs a second.

#include <algorithm>

#include "harness/machine.h"
#include "harness/slices.h"
#include "harness/statistics.h"
#include "locks/callers.h"
#include "stores/redis_floor.h"
#include "stores/rows.h"
#include "support/redis_server.h"

namespace baton::bench {
namespace {

constexpr int kNamesOfOne = 1000;
constexpr int kNamesOfMany = 16;

Figure compared(const RowOptions& options, std::string row, std::string what, double target,
                const std::vector<Step>& ours, const std::vector<Step>& floor) {
  const auto rate = [&](const std::vector<Step>& steps) {
    return [&] { return run_slice(steps, options.slice).per_second(); };
  };
  const Pairs pairs = take_turns(options.slices, rate(ours), rate(floor));
  const auto all = ratios(pairs.ours, pairs.floor);
  return {.row = std::move(row),
          .what = std::move(what),
          .unit = "pairs/s",
          .ours = median(pairs.ours),
          .floor = median(pairs.floor),
          .score = median(all),
          .bound = Bound::at_least,
          .target = target,
          .details = {{"lowest_ratio", percentile(all, 0)}, {"highest_ratio", percentile(all, 1)}}};
}

// Microseconds of processor time that a pair takes, in this process and in the server: other work
// on the machine changes it far less than it changes the pairs a second.
Figure processor_time(const RowOptions& options, std::string row, std::string what,
                      const std::string& server, const std::vector<Step>& ours,
                      const std::vector<Step>& floor) {
  const auto cost = [&](const std::vector<Step>& steps) {
    return [&] {
      const double before = cpu_seconds_of(server);
      const Slice slice = run_slice(steps, options.slice);
      return (slice.cpu + cpu_seconds_of(server) - before) / static_cast<double>(slice.steps) * 1e6;
    };
  };
  const Pairs pairs = take_turns(std::min(3, options.slices), cost(ours), cost(floor));
  return {.row = std::move(row),
          .what = std::move(what),
          .unit = "us/pair",
          .ours = median(pairs.ours),
          .floor = median(pairs.floor),
          .score = median(ratios(pairs.ours, pairs.floor))};
}

}  // namespace

std::vector<Figure> redis_one_caller(const RowOptions& options) {
  const test::RedisServer server;
  const auto ours = callers(open(server.url()).value(), 1, kNamesOfOne);
  const auto floor = redis_floor(server.port(), 1, kNamesOfOne);
  return {compared(options, "redis-1", "Redis, 1 caller, against a raw EVALSHA loop", 0.85, ours,
                   floor),
          processor_time(options, "redis-1", "Redis, 1 caller: processor time, client and server",
                         std::to_string(server.pid()), ours, floor)};
}

std::vector<Figure> redis_many_callers(const RowOptions& options) {
  const test::RedisServer server;
  const auto ours = callers(open(server.url()).value(), 64, kNamesOfMany);
  const auto floor = redis_floor(server.port(), 16, kNamesOfMany);
  return {
      compared(options, "redis-64", "Redis, 64 callers, against 16 raw unpipelined loops", 3, ours,
               floor),
      processor_time(options, "redis-64", "Redis, 64 callers: processor time, client and server",
                     std::to_string(server.pid()), ours, floor)};
}

}  // namespace baton::bench
