// Acquire and release on Redis, again and again: how many pairs a second.

#include "harness/rates.h"
#include "locks/callers.h"
#include "stores/redis_floor.h"
#include "stores/rows.h"
#include "support/redis_server.h"

namespace baton::bench {
namespace {

constexpr int kNamesOfOne = 1000;
constexpr int kNamesOfMany = 16;

}  // namespace

std::vector<Figure> redis_one_caller(const RowOptions& options) {
  const test::RedisServer server;
  const std::string processes = std::to_string(server.pid());
  const auto ours = callers(open(server.url()).value(), 1, kNamesOfOne);
  const auto floor = redis_floor(server.port(), 1, kNamesOfOne);
  return {compare_rates(options, "redis-1", "Redis, 1 caller, against a raw EVALSHA loop", 0.85,
                        ours, floor),
          compare_processor_time(options, "redis-1",
                                 "Redis, 1 caller: processor time, client and server",
                                 {ours, processes}, {floor, processes})};
}

std::vector<Figure> redis_many_callers(const RowOptions& options) {
  const test::RedisServer server;
  const std::string processes = std::to_string(server.pid());
  const auto ours = callers(open(server.url()).value(), 64, kNamesOfMany);
  const auto floor = redis_floor(server.port(), 16, kNamesOfMany);
  return {compare_rates(options, "redis-64", "Redis, 64 callers, against 16 raw unpipelined loops",
                        3, ours, floor),
          compare_processor_time(options, "redis-64",
                                 "Redis, 64 callers: processor time, client and server",
                                 {ours, processes}, {floor, processes})};
}

}  // namespace baton::bench
