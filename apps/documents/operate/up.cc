#include "apps/documents/operate/up.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "apps/common/start.h"
#include "apps/documents/operate/figures.h"
#include "apps/documents/operate/replica.h"
#include "apps/documents/services.h"

namespace baton::documents {
namespace {

constexpr Millis kTick{100};
constexpr Millis kShowEvery{1'000};
constexpr Millis kStopWithin{20'000};

// One `up` in a directory; the lock ends with the process.
Result<void> be_alone(const Places& places) {
  const std::string path = places.directory + "/run/up.lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0 && ::flock(file, LOCK_EX | LOCK_NB) == 0) return {};
  return Error{.code = Code::bad_request,
               .message = "another 'documents up' runs on " + places.directory};
}

std::vector<Replica> plan(const Places& places, const UpOptions& options) {
  std::vector<Replica> replicas;
  int service_number = 0;
  for (const KnownService& service : all_services()) {
    const std::string name(service.name);
    const auto wanted = options.replicas.find(name);
    const int count = wanted == options.replicas.end() ? 1 : wanted->second;
    for (int i = 1; i <= count; ++i) {
      const std::string instance = name + "-" + std::to_string(i);
      const int port = options.port != 0 && i == 1 ? options.port + service_number : 0;
      Replica::How how{.instance = instance,
                       .arguments = {"documents", name, "--instance", instance, "--listen",
                                     "127.0.0.1:" + std::to_string(port), "--run-file",
                                     places.run_file(instance), "--spool", places.spool()},
                       .environment = {"DOCUMENTS_DATABASE=" + places.database(name),
                                       "DOCUMENTS_BROKER=" + places.broker()},
                       .log_file = places.log_file(instance),
                       .run_file = places.run_file(instance)};
      const auto pass = [&](const char* option, const std::string& value) {
        if (value.empty()) return;
        how.arguments.insert(how.arguments.end(), {option, value});
      };
      pass("--config", options.config);
      pass("--lock-ttl", options.lock_ttl);
      pass("--retry-delays", options.retry_delays);
      if (options.allow_simulation) how.arguments.emplace_back("--allow-simulation");
      replicas.emplace_back(std::move(how));
    }
    ++service_number;
  }
  return replicas;
}

// On a terminal a table that is drawn again and again, elsewhere lines when something changes.
class Display {
 public:
  explicit Display(const Places& places)
      : places_(places), terminal_(::isatty(STDOUT_FILENO) != 0) {}

  void show(const std::vector<Replica>& replicas) {
    const auto figures = read_figures(places_);
    const std::string line = figures ? figures->line() : "waiting for the services";
    const bool ready = std::all_of(replicas.begin(), replicas.end(),
                                   [](const Replica& one) { return !one.url().empty(); });
    if (terminal_) {
      draw(replicas, line);
    } else {
      if (ready && !told_ready_) tell_ready(replicas);
      if (line != last_line_) std::printf("%s\n", line.c_str());
    }
    told_ready_ = told_ready_ || ready;
    last_line_ = line;
    std::fflush(stdout);
  }

  [[nodiscard]] bool ready() const { return told_ready_; }

  void ended(const Replica& replica) const {
    if (terminal_) return;
    std::printf("%s %s; starting it again\n", replica.instance().c_str(),
                replica.last_end().c_str());
    std::fflush(stdout);
  }

 private:
  void tell_ready(const std::vector<Replica>& replicas) const {
    for (const Replica& replica : replicas) {
      std::printf("%-16s %7d  %s\n", replica.instance().c_str(), replica.pid(),
                  replica.url().c_str());
    }
    std::printf("ready: POST %s/documents\n", replicas.front().url().c_str());
  }

  void draw(const std::vector<Replica>& replicas, const std::string& line) {
    if (drawn_ > 0) std::printf("\x1b[%dA", drawn_);
    std::printf("\x1b[K%-16s %7s %8s  %s\n", "SERVICE", "PID", "RESTARTS", "URL");
    for (const Replica& replica : replicas) {
      const std::string url = replica.url();
      std::printf("\x1b[K%-16s %7d %8d  %s\n", replica.instance().c_str(), replica.pid(),
                  std::max(replica.restarts(), 0), url.empty() ? "starting" : url.c_str());
    }
    std::printf("\x1b[K%s\n", line.c_str());
    drawn_ = static_cast<int>(replicas.size()) + 2;
  }

  const Places& places_;
  const bool terminal_;
  bool told_ready_ = false;
  std::string last_line_;
  int drawn_ = 0;
};

void stop_all(std::vector<Replica>& replicas, const sigset_t& signals) {
  for (Replica& replica : replicas) {
    replica.retire();
    replica.signal(SIGTERM);
  }
  const Instant until = BootClock::now() + kStopWithin;
  const timespec tick{.tv_nsec = 50'000'000};
  const auto left = [&] {
    for (Replica& replica : replicas) (void)replica.tend(BootClock::now());
    return std::any_of(replicas.begin(), replicas.end(),
                       [](const Replica& one) { return one.running(); });
  };
  while (left() && BootClock::now() < until) (void)::sigtimedwait(&signals, nullptr, &tick);
  for (const Replica& replica : replicas) replica.signal(SIGKILL);
}

}  // namespace

Result<int> up(const Places& given, const UpOptions& options) {
  Places places = given;
  places.directory = std::filesystem::absolute(places.directory).string();
  if (auto ready = prepare(places); !ready) return ready.error();
  if (auto alone = be_alone(places); !alone) return alone.error();

  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGCHLD}) sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);

  std::vector<Replica> replicas = plan(places, options);
  Display display(places);
  Instant show_at{};
  const timespec tick{.tv_nsec = std::chrono::nanoseconds(kTick).count()};
  for (;;) {
    const Instant now = BootClock::now();
    for (Replica& replica : replicas) {
      if (replica.tend(now)) display.ended(replica);
    }
    if (now >= show_at) {
      display.show(replicas);
      if (display.ready()) show_at = BootClock::now() + kShowEvery;
    }
    const int signal = ::sigtimedwait(&signals, nullptr, &tick);
    if (signal == SIGINT || signal == SIGTERM) break;
  }
  std::printf("stopping\n");
  std::fflush(stdout);
  stop_all(replicas, signals);
  return apps::kOk;
}

}  // namespace baton::documents
