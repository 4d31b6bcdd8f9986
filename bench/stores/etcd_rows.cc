// A lock on etcd against one create, and passing it on against one watch event. The server flushes
// to a real disk.

#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "baton/locks.h"
#include "harness/slices.h"
#include "harness/statistics.h"
#include "stores/etcd_floor.h"
#include "stores/rows.h"
#include "support/etcd_server.h"
#include "support/wait.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

// Samples of both in turns for as long as a slice lasts.
struct Samples {
  std::vector<double> ours;
  std::vector<double> floor;
};

Samples sampled(const RowOptions& options, const std::function<double()>& ours,
                const std::function<double()>& floor) {
  Samples samples;
  const auto until = BootClock::now() + options.slice;
  do {
    samples.ours.push_back(ours());
    samples.floor.push_back(floor());
  } while (BootClock::now() < until);
  return samples;
}

Figure compared(const RowOptions& options, std::string row, std::string what, double share,
                double target, const std::vector<Samples>& slices) {
  Figure figure{.row = std::move(row), .what = std::move(what), .unit = "ms"};
  Pairs pairs;
  for (const Samples& samples : slices) {
    pairs.ours.push_back(percentile(samples.ours, share));
    pairs.floor.push_back(percentile(samples.floor, share));
  }
  figure.ours = median(pairs.ours);
  figure.floor = median(pairs.floor);
  figure.score = median(ratios(pairs.ours, pairs.floor));
  figure.bound = Bound::at_most;
  figure.target = target;
  figure.details = {{"slices", static_cast<double>(options.slices)}};
  return figure;
}

std::vector<Samples> slices_of(const RowOptions& options, const std::function<double()>& ours,
                               const std::function<double()>& floor) {
  for (int i = 0; i < 20; ++i) ours(), floor();  // connections, leases
  std::vector<Samples> slices;
  for (int i = 0; i < options.slices; ++i) slices.push_back(sampled(options, ours, floor));
  return slices;
}

// One process holds, another one waits: from the release until the other one has it.
class Relay {
 public:
  explicit Relay(const std::string& url)
      : first_(open(url, {.owner = "first"}).value()),
        second_(open(url, {.owner = "second"}).value()) {}

  double hand_over() {
    auto held = first_.acquire(kName, {.wait = 10s}).value();
    {
      const std::lock_guard lock(mutex_);
      granted_at_ = 0;
    }
    second_.acquire_async({kName}, {.wait = 30s}, [this](Result<Lease> lease) {
      const std::lock_guard lock(mutex_);
      granted_at_ = milliseconds_now();
      lease_ = std::move(lease);
      signal_.notify_all();
    });
    const bool waits =
        test::poll_until([&] { return first_.get(kName).value().waiting == 1; }, 10s, 1ms);
    if (!waits) throw std::runtime_error("the waiter does not queue up");
    const double begin = milliseconds_now();
    held.release().value();
    std::unique_lock lock(mutex_);
    if (!signal_.wait_for(lock, 30s, [&] { return granted_at_ != 0; }) || !*lease_) {
      throw std::runtime_error("the lock was not handed over");
    }
    const double took = granted_at_ - begin;
    Lease passed = std::move(**lease_);
    lock.unlock();
    passed.release().value();
    return took;
  }

 private:
  inline static const LockName kName{.subject = "baton"};
  LockClient first_;
  LockClient second_;
  std::mutex mutex_;
  std::condition_variable signal_;
  std::optional<Result<Lease>> lease_;
  double granted_at_ = 0;
};

}  // namespace

std::vector<Figure> etcd_acquire(const RowOptions& options) {
  const test::EtcdServer server({.on_disk = true});
  LockClient locks = open(server.url()).value();
  EtcdFloor floor(server.endpoint());
  int name = 0;
  const auto ours = [&] {
    const double begin = milliseconds_now();
    auto lease = locks.acquire({.subject = "n", .resources = {std::to_string(++name)}}, {}).value();
    const double took = milliseconds_now() - begin;
    lease.release().value();
    return took;
  };
  const auto slices = slices_of(options, ours, [&] { return floor.create(); });
  return {compared(options, "etcd-acquire", "etcd, uncontended acquire, against one create", 0.5,
                   1.3, slices)};
}

std::vector<Figure> etcd_handover(const RowOptions& options) {
  const test::EtcdServer server({.on_disk = true});
  Relay relay(server.url());
  EtcdFloor floor(server.endpoint());
  const auto slices = slices_of(
      options, [&] { return relay.hand_over(); }, [&] { return floor.event(); });
  return {compared(options, "etcd-handover", "etcd, hand-over, median, against a watch event", 0.5,
                   3, slices),
          compared(options, "etcd-handover", "etcd, hand-over, 95%, against a watch event", 0.95, 6,
                   slices)};
}

}  // namespace baton::bench
