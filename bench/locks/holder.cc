// The process that holds many leases in the renewals row:
//
//   bench_locks holder URL COUNT ROUNDS
//
// Acquires COUNT locks with a TTL of 30 s, and for every round in which all of them were renewed
// writes a line: <seconds in the store> <batches> <failed batches> <leases lost> <resident MB>

#include <algorithm>
#include <cstdio>
#include <latch>
#include <mutex>
#include <thread>

#include "harness/machine.h"
#include "locks/callers.h"
#include "locks/observed_store.h"
#include "locks/rows.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

void take_some(LockClient& locks, int from, int count, std::vector<Lease>& leases) {
  std::mutex mutex;
  std::latch answered(count);
  for (int i = from; i < from + count; ++i) {
    locks.acquire_async({bench_name(0, i)}, {.ttl = 30s}, [&](Result<Lease> lease) {
      {
        const std::lock_guard lock(mutex);
        if (lease) leases.push_back(std::move(*lease));
      }
      answered.count_down();
    });
  }
  answered.wait();
}

std::vector<Lease> take_all(LockClient& locks, int count) {
  constexpr int kAtOnce = 1000;
  std::vector<Lease> leases;
  leases.reserve(static_cast<std::size_t>(count));
  for (int from = 0; from < count; from += kAtOnce) {
    take_some(locks, from, std::min(kAtOnce, count - from), leases);
  }
  return leases;
}

}  // namespace

int run_holder(const std::vector<std::string>& words) {
  auto store =
      std::make_shared<ObservedStore>(open_store(words.at(0), BootClock::now() + 10s).value());
  const int count = std::stoi(words.at(1));
  const int rounds = std::stoi(words.at(2));
  LockClient locks = LockClient::make(store, {}).value();
  const Instant start = BootClock::now();
  const std::vector<Lease> leases = take_all(locks, count);
  std::fprintf(stderr, "took %zu of %d leases in %.1f s\n", leases.size(), count,
               std::chrono::duration<double>(BootClock::now() - start).count());
  auto before = store->renewals();
  for (int round = 0; round < rounds; ++round) {
    auto now = before;
    while (now.leases < before.leases + leases.size()) {
      std::this_thread::sleep_for(1ms);
      now = store->renewals();
    }
    const auto lost = std::count_if(leases.begin(), leases.end(),
                                    [](const Lease& lease) { return !lease.valid(); });
    std::printf("%.6f %zu %zu %td %.1f\n", now.seconds - before.seconds,
                now.batches - before.batches, now.failed_batches - before.failed_batches,
                lost + count - static_cast<std::ptrdiff_t>(leases.size()), resident_megabytes());
    std::fflush(stdout);
    before = now;
  }
  std::fflush(stdout);
  // Not worth the time to release them one by one: the database goes with the run.
  std::_Exit(0);
}

}  // namespace baton::bench
