#include "locks/callers.h"

namespace baton::bench {

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

}  // namespace baton::bench
