#include "apps/documents/operate/up.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>

#include "apps/common/start.h"
#include "apps/documents/operate/display.h"
#include "apps/documents/operate/replica.h"
#include "apps/documents/services.h"

namespace baton::documents {
namespace {

constexpr Millis kTick{100};
constexpr Millis kShowEvery{1'000};
constexpr Millis kStopWithin{20'000};
constexpr const char* kElsewhere = "; name another directory with --directory";

Error refuse(const std::string& why) { return {.code = Code::bad_request, .message = why}; }

// One `up` in a directory; the lock ends with the process.
Result<void> be_alone(const Places& places) {
  const std::string path = places.directory + "/run/up.lock";
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return refuse("cannot write " + path + ": " + std::strerror(errno) + kElsewhere);
  if (::flock(file, LOCK_EX | LOCK_NB) == 0) return {};
  ::close(file);
  return refuse("another 'documents up' runs on " + places.directory +
                "; stop that one, or name another directory with --directory");
}

int replicas_of(const std::string& service, const UpOptions& options) {
  const auto wanted = options.replicas.find(service);
  return wanted == options.replicas.end() ? 1 : wanted->second;
}

std::vector<Replica> plan(const Places& places, const UpOptions& options) {
  std::vector<Replica> replicas;
  int service_number = 0;
  for (const KnownService& service : all_services()) {
    const std::string name(service.name);
    const int count = replicas_of(name, options);
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

// Empty: a service can listen there.
std::string why_taken(int port) {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  (void)::setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address{.sin_family = AF_INET,
                            .sin_port = htons(static_cast<std::uint16_t>(port)),
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
  const bool taken =
      ::bind(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0;
  const std::string why = taken ? std::strerror(errno) : "";
  ::close(probe);
  return why;
}

// Better said once than by a service that ends again and again.
Result<void> find_ports_free(const UpOptions& options) {
  int port = options.port;
  if (port == 0) return {};
  for (const KnownService& service : all_services()) {
    const std::string name(service.name);
    const std::string why = replicas_of(name, options) > 0 ? why_taken(port) : "";
    if (!why.empty()) {
      return refuse("port " + std::to_string(port) + ", for " + name + ": " + why +
                    "; choose others with --port N, or any free ones with --port 0");
    }
    ++port;
  }
  return {};
}

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
  while (left() && BootClock::now() < until) {
    const int signal = ::sigtimedwait(&signals, nullptr, &tick);
    if (signal == SIGINT || signal == SIGTERM) break;
  }
  for (const Replica& replica : replicas) replica.signal(SIGKILL);
}

}  // namespace

Result<int> up(const Places& given, const UpOptions& options) {
  Places places = given;
  places.directory = std::filesystem::absolute(places.directory).string();
  if (auto ready = prepare(places); !ready) return ready.error();
  if (auto broker = Broker::open(places.broker()); !broker) return broker.error();
  if (auto alone = be_alone(places); !alone) return alone.error();
  if (auto free = find_ports_free(options); !free) return free.error();

  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&signals, number);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);

  std::vector<Replica> replicas = plan(places, options);
  if (replicas.empty()) return refuse("--replicas: no service is left to run");
  Display display(places);
  Instant show_at{};
  const timespec tick{.tv_nsec = std::chrono::nanoseconds(kTick).count()};
  for (;;) {
    const Instant now = BootClock::now();
    for (Replica& replica : replicas) {
      if (!replica.tend(now)) continue;
      if (replica.misconfigured()) {
        stop_all(replicas, signals);
        return refuse(replica.instance() + " " + replica.last_end());
      }
      display.ended(replica);
      if (std::all_of(replicas.begin(), replicas.end(), std::mem_fn(&Replica::given_up))) {
        return Error{
            .code = Code::unavailable,
            .message = "no service can work: " + replica.instance() + " " + replica.last_end()};
      }
    }
    if (now >= show_at) {
      display.show(replicas);
      if (display.ready()) show_at = BootClock::now() + kShowEvery;
    }
    const int signal = ::sigtimedwait(&signals, nullptr, &tick);
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) break;
  }
  display.stopping(replicas.size());
  stop_all(replicas, signals);
  display.stopped();
  return apps::kOk;
}

}  // namespace baton::documents
