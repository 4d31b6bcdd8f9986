// Three observers on as many machines as you like: start it several times and watch them share.
//
//   baton-jobs STORE CONFIG.yaml NODE

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "baton/job_config.h"
#include "baton/locks.h"
#include "baton/scheduler.h"

namespace {

// The log lines of the scheduler, for people.
class Log final : public baton::SchedulerListener {
 public:
  explicit Log(std::string node) : node_(std::move(node)) {}
  void on_log(baton::LogLevel level, const std::string&, const std::string& message) override {
    std::printf("%-5s [%s] %s\n", std::string(to_string(level)).c_str(), node_.c_str(),
                message.c_str());
    std::fflush(stdout);
  }

 private:
  std::string node_;
};

void poll(baton::Run& run) {
  // Here a real observer reads its source and writes, with baton::fence(tx, run) first.
  run.set_detail("fire " + std::to_string(run.number()) + " under token " +
                 std::to_string(run.token()));
}

baton::Result<void> add_observers(baton::Scheduler& jobs, const baton::JobConfig& config) {
  const std::vector<std::string> names{"order-observer-poll", "inventory-observer-poll",
                                       "wes-observer-poll"};
  if (auto ok = config.check(names); !ok) return ok;
  for (const std::string& name : names) {
    auto job = config.configure(name, {.group = "observer"});
    if (!job) return job.error();
    if (!job->schedule) job->schedule = baton::Schedule::fixed_delay(baton::Millis(30'000)).value();
    if (auto ok = jobs.add(name, *job->schedule, job->options, poll); !ok) return ok;
  }
  return {};
}

int fail(const baton::Error& error) {
  std::fprintf(stderr, "baton-jobs: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: baton-jobs STORE CONFIG.yaml NODE\n");
    return 2;
  }
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // for all threads: main waits for them

  std::ifstream file(argv[2]);
  const std::string yaml{std::istreambuf_iterator<char>(file), {}};
  if (!file) return fail({.message = "cannot read " + std::string(argv[2])});
  const auto config = baton::JobConfig::parse(yaml);
  if (!config) return fail(config.error());
  auto locks = baton::open(argv[1], {.owner = argv[3]});
  if (!locks) return fail(locks.error());
  Log log(argv[3]);
  baton::Scheduler jobs(*locks,
                        {.own_node = {.id = argv[3], .role = "observers"}, .listeners = {&log}});
  if (auto added = add_observers(jobs, *config); !added) return fail(added.error());
  if (auto started = jobs.start(); !started) return fail(started.error());
  int signal = 0;
  sigwait(&ends, &signal);
  jobs.stop();
  return 0;
}
