#include "platform.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "apps/documents/operate/replica.h"
#include "apps/documents/services.h"
#include "baton/partitions.h"

namespace demo {

using namespace std::chrono_literals;
namespace documents = baton::documents;
namespace sql = baton::sql;

namespace {

// All its threads: a signal takes its time.
bool stands_still(pid_t pid) {
  const auto stopped = [pid] {
    std::error_code gone;
    const auto tasks =
        std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone);
    return !gone && std::all_of(begin(tasks), end(tasks), [](const auto& task) {
      return documents::process_state(std::stoi(task.path().filename().string())) == 'T';
    });
  };
  const auto until = std::chrono::steady_clock::now() + 2s;
  while (!stopped()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace

Platform::Platform(std::string program, const std::string& directory)
    : program_(std::move(program)),
      places_{.directory = directory},
      broker_(baton::Broker::open(places_.broker()).value()),
      figures_(places_) {
  for (const auto& service : documents::all_services()) services_.emplace_back(service.name);
}

std::vector<std::string> Platform::command(std::vector<std::string> words) const {
  words.insert(words.begin(), program_);
  words.insert(words.end(), {"--directory", places_.directory});
  return words;
}

// Locks and retries are shorter than by default, so that the demo is.
std::vector<std::string> Platform::up() const {
  std::string replicas;
  for (const std::string& service : services_) {
    replicas += (replicas.empty() ? "" : ",") + service + "=" + std::to_string(kReplicas);
  }
  return command({"up", "--replicas", replicas, "--port", "0", "--lock-ttl", "2s", "--retry-delays",
                  "100ms,200ms,400ms,800ms,1s", "--allow-simulation"});
}

Platform::Replica Platform::replica(const std::string& instance) const {
  Replica replica{.instance = instance};
  std::ifstream file(places_.run_file(instance));
  if (!(file >> replica.pid >> replica.url)) return replica;
  const char state = documents::process_state(replica.pid);
  replica.alive = state != '\0' && state != 'Z';
  replica.paused = state == 'T';
  return replica;
}

std::vector<Platform::Replica> Platform::replicas(const std::string& service) const {
  std::vector<Replica> found;
  for (int i = 1; i <= kReplicas; ++i) {
    found.push_back(replica(service + "-" + std::to_string(i)));
  }
  return found;
}

std::vector<Platform::Replica> Platform::replicas() const {
  std::vector<Replica> found;
  for (const std::string& service : services_) {
    for (auto& one : replicas(service)) found.push_back(std::move(one));
  }
  return found;
}

bool Platform::ready() const {
  const auto all = replicas();
  return std::all_of(all.begin(), all.end(), [](const Replica& one) { return one.alive; });
}

baton::LockClient& Platform::locks_of(const std::string& service) {
  const auto found = locks_.find(service);
  if (found != locks_.end()) return found->second;
  auto opened = baton::open(places_.database(service) + "-locks", {.owner = "demo"});
  return locks_.emplace(service, std::move(opened.value())).first->second;
}

// An outbox in SQLite has one lane.
Platform::Turn Platform::publisher(const std::string& service) {
  const auto sets = baton::partition_sets(locks_of(service), "relay/" + service);
  if (!sets || sets->empty() || sets->front().partitions.empty()) return {};
  const auto& lane = sets->front().partitions.front();
  return {.instance = lane.node, .token = lane.token};
}

Platform::Turn Platform::sealer() {
  const auto found = locks_of("audit").find({.subject = "leader"});
  if (!found) return {};
  for (const auto& lock : found->items) {
    if (lock.holders.empty()) continue;
    return {.instance = lock.holders.front().owner, .token = lock.holders.front().token};
  }
  return {};
}

// A process that is stopped in the middle of a transaction of SQLite holds up all others; one that
// has claimed a retry keeps it for long.
bool Platform::nobody_waits_for(const std::string& service) const {
  const auto writable = [](const std::string& url) {
    auto probe = sql::Connection::open(url, {.statement_timeout = 100ms});
    return probe && (*probe)->script("BEGIN IMMEDIATE; ROLLBACK");
  };
  const std::string database = places_.database(service);
  if (!writable(database) || !writable(database + "-locks") ||
      !writable("sqlite:" + places_.directory + "/broker.db")) {
    return false;
  }
  const auto session = places_.look_into(service);
  if (!session) return false;
  const auto claimed = (*session)->query(
      "SELECT count(*) FROM inbox_events WHERE status = 'RETRY' AND next_retry_at >"
      " (julianday('now') - 2440587.5) * 86400000 + 5000");
  return claimed && claimed->front().integer(0) == 0;
}

// Delivered to a replica of the service, and not settled.
bool Platform::has_deliveries(const std::string& service) const {
  const std::string queue(documents::find_service(service)->queue);
  const auto found = broker_->queues({.queues = {{.name = queue}}}, baton::BootClock::now() + 1s);
  return found && !found->empty() && found->front().unsettled > 0;
}

bool Platform::pause(const Replica& replica, const std::string& service, bool with_events) const {
  if (replica.pid <= 0 || (with_events && !has_deliveries(service))) {
    std::this_thread::sleep_for(1ms);
    return false;
  }
  ::kill(replica.pid, SIGSTOP);
  // What the other replica has in hand is settled within this time.
  const auto until = std::chrono::steady_clock::now() + 300ms;
  bool good = stands_still(replica.pid) && nobody_waits_for(service);
  while (good && with_events && std::chrono::steady_clock::now() < until) {
    good = has_deliveries(service);
    std::this_thread::sleep_for(5ms);
  }
  if (!good) ::kill(replica.pid, SIGCONT);
  return good;
}

std::size_t Platform::log_size(const std::string& instance) const {
  std::ifstream file(places_.log_file(instance), std::ios::ate | std::ios::binary);
  return file ? static_cast<std::size_t>(file.tellg()) : 0;
}

int Platform::count_in_log(const std::string& instance, std::size_t from,
                           const std::string& text) const {
  std::ifstream file(places_.log_file(instance));
  file.seekg(static_cast<std::streamoff>(from));
  int count = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find(text) != std::string::npos) ++count;
  }
  return count;
}

}  // namespace demo
