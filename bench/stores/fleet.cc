#include "stores/fleet.h"

#include <csignal>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "stores/paired_samples.h"

namespace baton::bench {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 60s;

}  // namespace

Fleet::Fleet(const Deployment& deployment, std::size_t followers, Millis ttl)
    : deployment_(deployment),
      followers_(followers),
      ttl_(ttl),
      locks_(open(deployment.url(deployment.port)).value()) {
  for (std::size_t i = 0; i <= followers_; ++i) start_one();
  leader_ = await_leader({}).replica;
}

void Fleet::start_one() {
  Replica made;
  int port = 0;
  if (deployment_.port != 0) {
    made.proxy = std::make_unique<test::FaultProxy>(deployment_.port);
    port = made.proxy->port();
  }
  made.process = std::make_unique<test::Process>(test::ProcessOptions{
      .argv = {BATON_BENCH_FOLLOWER, deployment_.url(port), std::to_string(ttl_.count())}});
  replicas_.push_back(std::move(made));
}

void Fleet::await_followers() {
  const Instant patience = BootClock::now() + kPatience;
  while (true) {
    const auto seen = locks_.get({.subject = "leader"});
    if (seen && seen->waiting >= followers_) return;
    if (BootClock::now() > patience) throw std::runtime_error("not all followers queue up");
    std::this_thread::sleep_for(2ms);
  }
}

// Who has said last that it leads.
std::optional<Fleet::Led> Fleet::find_leader(std::optional<std::size_t> other_than) const {
  std::optional<Led> found;
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    if (i == other_than) continue;
    std::istringstream lines(replicas_[i].process->out());
    std::int64_t since = 0;
    bool leads = false;
    for (std::string kind; lines >> kind >> since;) leads = kind == "G";
    if (leads && (!found || since > found->since)) found = Led{i, since};
  }
  return found;
}

Fleet::Led Fleet::await_leader(std::optional<std::size_t> other_than) {
  const Instant patience = BootClock::now() + kPatience;
  while (BootClock::now() < patience) {
    if (const auto found = find_leader(other_than)) return *found;
    std::this_thread::sleep_for(1ms);
  }
  throw std::runtime_error("nobody leads");
}

void Fleet::replace_leader(const Led& next) {
  // In this order: a stopped process ends by the signal, and needs no network for it.
  replicas_[leader_].process.reset();
  replicas_.erase(replicas_.begin() + static_cast<std::ptrdiff_t>(leader_));
  leader_ = next.replica - (next.replica > leader_ ? 1 : 0);
  start_one();
}

double Fleet::measure(const std::function<void(Replica& leader)>& strike) {
  const auto struck = BootClock::now();
  strike(replicas_[leader_]);
  const Led next = await_leader(leader_);
  replace_leader(next);
  return static_cast<double>(next.since - struck.time_since_epoch().count()) / 1e6;
}

double Fleet::kill() {
  return measure([](Replica& leader) { leader.process->kill(SIGKILL); });
}

double Fleet::stop() {
  return measure([](Replica& leader) { leader.process->kill(SIGSTOP); });
}

double Fleet::cut() {
  return measure([](Replica& leader) { leader.proxy->cut(); });
}

double Fleet::crash_all() {
  return measure([this](Replica& leader) {
    leader.process->kill(SIGKILL);
    const double began = milliseconds_now();
    deployment_.restart();
    away_ = milliseconds_now() - began;
  });
}

bool Fleet::keeps_leader_over_restart(Millis limit) {
  const auto said = [this] { return replicas_[leader_].process->out(); };
  const std::string before = said();
  deployment_.restart();
  std::this_thread::sleep_for(limit);
  const Led now = await_leader({});
  const bool kept = now.replica == leader_ && said() == before;
  leader_ = now.replica;
  return kept;
}

}  // namespace baton::bench
