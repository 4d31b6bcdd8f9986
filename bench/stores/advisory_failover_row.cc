// A leader and ten followers on advisory locks; the leader is killed. How long until another leads?

#include <algorithm>
#include <csignal>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "baton/locks.h"
#include "baton/store_admin.h"
#include "harness/statistics.h"
#include "stores/rows.h"
#include "support/postgres_server.h"
#include "support/process.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kFollowers = 10;
constexpr int kSamples = 100;
constexpr auto kPatience = 60s;

class Fleet {
 public:
  explicit Fleet(std::string url) : url_(std::move(url)), locks_(open(url_).value()) {
    for (std::size_t i = 0; i <= kFollowers; ++i) start_one();
    leader_ = await_leader().process;
  }

  // Kills the leader and gives the milliseconds until the next one has the lock.
  double fail_over() {
    await_followers();
    const auto killed = BootClock::now();
    leader_->kill(SIGKILL);
    std::erase_if(replicas_, [&](const auto& one) { return one.get() == leader_; });
    const Leader next = await_leader();
    leader_ = next.process;
    start_one();
    return static_cast<double>(next.since - killed.time_since_epoch().count()) / 1e6;
  }

 private:
  struct Leader {
    test::Process* process = nullptr;
    std::int64_t since = 0;  // boot time in ns
  };

  void start_one() {
    replicas_.push_back(std::make_unique<test::Process>(
        test::ProcessOptions{.argv = {BATON_BENCH_FOLLOWER, url_, "30000"}}));
  }

  void await_followers() {
    const Instant patience = BootClock::now() + kPatience;
    while (locks_.get({.subject = "leader"}).value().waiting < kFollowers) {
      if (BootClock::now() > patience) throw std::runtime_error("not all followers queue up");
      std::this_thread::sleep_for(2ms);
    }
  }

  Leader await_leader() {
    const Instant patience = BootClock::now() + kPatience;
    while (BootClock::now() < patience) {
      for (const auto& replica : replicas_) {
        std::istringstream line(replica->out());
        Leader found{.process = replica.get()};
        std::string kind;
        if (line >> kind >> found.since) return found;
      }
      std::this_thread::sleep_for(1ms);
    }
    throw std::runtime_error("nobody leads");
  }

  const std::string url_;
  LockClient locks_;
  std::vector<std::unique_ptr<test::Process>> replicas_;
  test::Process* leader_ = nullptr;
};

}  // namespace

std::vector<Figure> advisory_failover(const RowOptions& /*options*/) {
  const test::PostgresServer server;
  const std::string plain = server.url();
  const std::string url = "postgres-advisory" + plain.substr(plain.find(':'));
  open_admin(url, BootClock::now() + 10s).value()->migrate(BootClock::now() + 30s).value();
  Fleet fleet(url);
  std::vector<double> times;
  for (int i = 0; i < kSamples; ++i) times.push_back(fleet.fail_over());
  Figure figure{.row = "advisory-failover",
                .what = "from SIGKILL of the leader to the next one, 10 followers, 95%",
                .unit = "ms",
                .ours = percentile(times, 0.95),
                .bound = Bound::at_most,
                .target = 100};
  figure.score = figure.ours;
  figure.details = {{"samples", static_cast<double>(times.size())},
                    {"median", percentile(times, 0.5)},
                    {"longest", percentile(times, 1.0)}};
  return {std::move(figure)};
}

}  // namespace baton::bench
