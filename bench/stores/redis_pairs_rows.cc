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
  const Load ours = by_threads(callers(open(server.url()).value(), 1, kNamesOfOne));
  const Load floor = by_threads(redis_floor(server.port(), 1, kNamesOfOne));
  return {compare_rates(options, "redis-1", "Redis, 1 caller, against a raw EVALSHA loop", 0.85,
                        ours, floor),
          compare_processor_time(options, "redis-1",
                                 "Redis, 1 caller: processor time, client and server",
                                 {ours, processes}, {floor, processes})};
}

std::vector<Figure> redis_many_callers(const RowOptions& options) {
  const test::RedisServer server;
  const std::string processes = std::to_string(server.pid());
  const auto locks = open(server.url()).value();
  const Load callbacks = callers_by_callback(locks, 64, kNamesOfMany);
  const Load threads = by_threads(callers(locks, 64, kNamesOfMany));
  const Load floor = by_threads(redis_floor(server.port(), 16, kNamesOfMany));
  const std::string against = ", against 16 raw unpipelined loops";
  return {
      compare_rates(options, "redis-64", "Redis, 64 callers" + against, 3, callbacks, floor),
      compare_processor_time(options, "redis-64",
                             "Redis, 64 callers: processor time, client and server",
                             {callbacks, processes}, {floor, processes}),
      compare_rates(options, "redis-64", "Redis, 64 callers that block" + against, {}, threads,
                    floor),
      compare_processor_time(options, "redis-64", "Redis, 64 callers that block: processor time",
                             {threads, processes}, {floor, processes})};
}

}  // namespace baton::bench
