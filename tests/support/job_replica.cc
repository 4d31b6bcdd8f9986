// A replica with jobs, for tests that kill and stop it and for benchmarks that count what it does.
//
//   job_replica url=URL node=ID history=FILE [jobs=N | names=A,B] [kind=delay|rate] [every=MS]
//               [run=MS] [ttl=MS] [node_ttl=MS] [workers=N] [on_crash=rerun|skip] [phase=MS]
//               [max_attempts=N] [exit_in=FIRE]
//
// With exit_in the handler ends the process in the fire of that number.
// Prints "ready", runs until its standard input ends, and then prints what it cost. HISTORY gets a
// line an event, each in one write(2), so that a SIGKILL loses none: see job_history.h.

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "baton/locks.h"
#include "baton/observe.h"
#include "baton/scheduler.h"
#include "support/history_file.h"

namespace {

using namespace std::chrono_literals;
using baton::Millis;

using Settings = std::map<std::string, std::string>;

std::string text(const Settings& settings, const std::string& key, const std::string& otherwise) {
  const auto it = settings.find(key);
  return it == settings.end() ? otherwise : it->second;
}
Millis time(const Settings& settings, const std::string& key, int otherwise) {
  return Millis(std::stoll(text(settings, key, std::to_string(otherwise))));
}

class History {
 public:
  explicit History(const std::string& path) : file_(path) {}

  void note(char event, const baton::Run& run) const {
    const auto late = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now() - run.due());
    file_.note(std::string(1, event) + ' ' +
               std::to_string(baton::BootClock::now().time_since_epoch().count()) + ' ' +
               run.job() + ' ' + std::to_string(run.number()) + ' ' + std::to_string(run.token()) +
               ' ' + std::to_string(run.attempt()) + ' ' + std::to_string(late.count()));
  }

 private:
  baton::test::HistoryFile file_;
};

// Counts what the observer of a store does not see.
class CountedFinds final : public baton::LockStore {
 public:
  explicit CountedFinds(std::shared_ptr<baton::LockStore> inner) : inner_(std::move(inner)) {}
  baton::Result<std::vector<baton::Reply>> apply(std::span<const baton::Request> batch,
                                                 baton::Deadline deadline) override {
    return inner_->apply(batch, deadline);
  }
  baton::Result<baton::Page<baton::LockInfo>> find(const baton::Query& query,
                                                   baton::Deadline deadline) override {
    ++finds;
    return inner_->find(query, deadline);
  }
  std::unique_ptr<baton::Watch> watch(const std::string& channel, baton::WakeSink& sink) override {
    return inner_->watch(channel, sink);
  }
  [[nodiscard]] baton::Capabilities capabilities() const override { return inner_->capabilities(); }
  std::atomic<std::uint64_t> finds{0};

 private:
  std::shared_ptr<baton::LockStore> inner_;
};

// Says what goes wrong, and measures what the lock of a fire costs it.
class Log final : public baton::SchedulerListener {
 public:
  void on_acquired(const baton::Fire&, std::chrono::nanoseconds took, Millis) override {
    add(asked_, took);
  }
  // Right after the release. With many jobs not on the thread of the handler: then it is not
  // measured.
  void on_finished(const baton::Fire&, baton::FireResult, std::chrono::nanoseconds,
                   const std::string&) override {
    if (handler_ended > baton::Instant{}) add(released_, baton::BootClock::now() - handler_ended);
  }
  static thread_local baton::Instant handler_ended;

  // In microseconds.
  double asked(double share) { return percentile(asked_, share); }
  double released(double share) { return percentile(released_, share); }

  void on_log(baton::LogLevel level, const std::string&, const std::string& message) override {
    if (level >= baton::LogLevel::warning) std::fprintf(stderr, "%s\n", message.c_str());
  }

 private:
  void add(std::vector<std::int64_t>& to, std::chrono::nanoseconds took) {
    const std::lock_guard lock(mutex_);
    to.push_back(took.count());
  }
  double percentile(std::vector<std::int64_t>& of, double share) {
    const std::lock_guard lock(mutex_);
    if (of.empty()) return 0;
    std::sort(of.begin(), of.end());
    return static_cast<double>(of[static_cast<std::size_t>(share * (of.size() - 1))]) / 1e3;
  }
  std::mutex mutex_;
  std::vector<std::int64_t> asked_;
  std::vector<std::int64_t> released_;
};
thread_local baton::Instant Log::handler_ended;

std::vector<std::string> names_of(const Settings& settings) {
  std::vector<std::string> names;
  std::string given = text(settings, "names", "");
  const int count = std::stoi(text(settings, "jobs", given.empty() ? "1" : "0"));
  for (int i = 0; i < count; ++i) names.push_back("job-" + std::to_string(i));
  while (!given.empty()) {
    const auto comma = std::min(given.find(','), given.size());
    names.push_back(given.substr(0, comma));
    given.erase(0, comma + 1);
  }
  return names;
}

double cpu_milliseconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) { return t.tv_sec * 1e3 + t.tv_usec / 1e3; };
  return of(used.ru_utime) + of(used.ru_stime);
}

void work(const baton::Run& run, Millis time) {
  const auto until = baton::BootClock::now() + time;
  while (baton::BootClock::now() < until && !run.lost().stop_requested()) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(
        5ms, std::max<std::chrono::nanoseconds>(1us, until - baton::BootClock::now())));
  }
}

int run(const Settings& settings) {
  const History history(settings.at("history"));
  baton::StoreCounters counters;
  const auto deadline = baton::BootClock::now() + 30s;
  auto finds =
      std::make_shared<CountedFinds>(baton::open_store(settings.at("url"), deadline).value());
  auto store =
      baton::observed(finds, [&counters](const baton::StoreCall& call) { counters.count(call); });
  const std::string node = settings.at("node");
  auto locks = baton::LockClient::make(store, {.owner = node}).value();
  const bool by_rate = text(settings, "kind", "delay") == "rate";
  const Millis every = time(settings, "every", 1000);
  const Millis takes = time(settings, "run", 50);
  std::optional<Millis> phase;
  if (settings.contains("phase")) phase = time(settings, "phase", 0);
  Log log;
  baton::Scheduler jobs(
      locks, {.own_node = {.id = node, .ttl = time(settings, "node_ttl", 10'000)},
              .workers = static_cast<std::size_t>(std::stoi(text(settings, "workers", "16"))),
              .listeners = {&log}});
  const auto crash =
      text(settings, "on_crash", "rerun") == "skip" ? baton::OnCrash::skip : baton::OnCrash::rerun;
  const int attempts = std::stoi(text(settings, "max_attempts", "0"));
  const int deadly = std::stoi(text(settings, "exit_in", "0"));
  for (const auto& name : names_of(settings)) {
    auto when =
        by_rate ? baton::Schedule::fixed_rate(every, phase) : baton::Schedule::fixed_delay(every);
    jobs.add(name, when.value(),
             {.lock_ttl = time(settings, "ttl", 60'000),
              .on_crash = crash,
              .max_attempts = attempts},
             [&, deadly](baton::Run& fire) {
               history.note('S', fire);
               if (fire.number() == deadly) _exit(9);
               work(fire, takes);
               history.note(fire.lease().valid() ? 'E' : 'L', fire);
               Log::handler_ended = baton::BootClock::now();
             })
        .value();
  }
  jobs.start().value();
  std::puts("ready");
  std::fflush(stdout);
  const double cpu = cpu_milliseconds();
  const std::uint64_t calls = counters.calls();
  const std::uint64_t looks = finds->finds;
  char byte = 0;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  jobs.stop();
  using baton::Outcome;
  using baton::Verb;
  std::printf(
      "applies=%llu finds=%llu granted=%llu superseded=%llu busy=%llu released=%llu "
      "renewed=%llu cpu_ms=%.0f\n",
      static_cast<unsigned long long>(counters.calls() - calls),
      static_cast<unsigned long long>(finds->finds - looks),
      static_cast<unsigned long long>(counters.requests(Verb::acquire, Outcome::granted)),
      static_cast<unsigned long long>(counters.requests(Verb::acquire, Outcome::superseded)),
      static_cast<unsigned long long>(counters.requests(Verb::acquire, Outcome::busy)),
      static_cast<unsigned long long>(counters.requests(Verb::release, Outcome::done)),
      static_cast<unsigned long long>(counters.requests(Verb::renew, Outcome::granted)),
      cpu_milliseconds() - cpu);
  std::printf("asked_p50_us=%.0f asked_p95_us=%.0f release_p50_us=%.0f release_p95_us=%.0f\n",
              log.asked(0.5), log.asked(0.95), log.released(0.5), log.released(0.95));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string pair = argv[i];
    const auto equals = pair.find('=');
    if (equals == std::string::npos) return 2;
    settings[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  try {
    return run(settings);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "job_replica: %s\n", problem.what());
    return 1;
  }
}
