#include "broker/embedded/embedded_broker.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <map>
#include <mutex>

#include "broker/common/queue_findings.h"
#include "broker/embedded/publisher.h"
#include "broker/embedded/several_queues.h"
#include "broker/embedded/subscription.h"
#include "broker/embedded/topology_file.h"
#include "broker/embedded/watcher.h"
#include "policy/duration.h"
#include "store/sqlite/location.h"

namespace baton::broker {
namespace {

using Severity = BrokerFinding::Severity;

constexpr std::uint64_t kLeastFree = std::uint64_t{64} << 20;  // bytes

Error bad_url(std::string message) {
  return {.code = Code::bad_url, .message = std::move(message)};
}

class EmbeddedBroker final : public Broker {
 public:
  EmbeddedBroker(std::string path, Millis lease) : path_(std::move(path)), lease_(lease) {}

  Result<void> declare(const Topology& topology, Deadline by) override;
  Result<std::vector<BrokerFinding>> check(const Topology& topology, Deadline by) override;
  Result<std::vector<QueueInfo>> queues(const Topology& topology, Deadline by) override;
  Result<std::unique_ptr<Publisher>> publisher() override {
    return std::unique_ptr<Publisher>(std::make_unique<EmbeddedPublisher>(path_));
  }
  using Broker::subscribe;
  Result<std::unique_ptr<Subscription>> subscribe(std::vector<std::string> queues,
                                                  const SubscribeOptions& options,
                                                  Deadline by) override;
  [[nodiscard]] std::string describe() const override { return "embedded:" + path_; }

 private:
  [[nodiscard]] bool file_exists() const {
    struct stat found {};
    return ::stat(path_.c_str(), &found) == 0;
  }
  void examine_file(std::vector<BrokerFinding>& findings) const;
  [[nodiscard]] Result<std::vector<QueueInfo>> count(Database& database) const;

  const std::string path_;
  const Millis lease_;
  std::mutex mutex_;
  std::shared_ptr<Watcher> watcher_;  // from the first subscription on
};

Result<void> EmbeddedBroker::declare(const Topology& topology, Deadline by) {
  if (auto checked = check_topology(topology); !checked) return checked;
  auto database = open_broker_file(path_, by);
  if (!database) return database.error();
  auto transaction = begin_write(**database, by);
  if (!transaction) return transaction.error();
  auto stored = load_topology(**database);
  if (!stored) return stored.error();
  const Topology wanted = with_dead_letters(topology);
  for (const BrokerFinding& finding : differences(stored->topology, wanted)) {
    if (finding.code != "other-arguments") continue;
    return Error{.code = Code::bad_store, .message = finding.message};
  }
  if (auto added = add_missing(**database, stored->topology, wanted); !added) return added;
  if (auto done = transaction->commit(); !done) return done;
  return (*database)->sync();
}

void EmbeddedBroker::examine_file(std::vector<BrokerFinding>& findings) const {
  struct stat file {};
  if (::stat(path_.c_str(), &file) == 0 && (file.st_mode & 077) != 0) {
    findings.push_back({Severity::warning, "readable-by-others", path_,
                        path_ + " can be read or written by other users: chmod 600 it, unless "
                                "they are services of this system"});
  }
  struct statvfs disk {};
  if (::statvfs(path_.c_str(), &disk) == 0 &&
      std::uint64_t{disk.f_bavail} * disk.f_frsize < kLeastFree) {
    findings.push_back({Severity::warning, "low-disk", path_,
                        "less than 64 MiB are free on the disk of " + path_ +
                            ": a full disk refuses all messages"});
  }
}

Result<std::vector<BrokerFinding>> EmbeddedBroker::check(const Topology& topology, Deadline by) {
  if (auto checked = check_topology(topology); !checked) return checked.error();
  const Topology wanted = with_dead_letters(topology);
  if (!file_exists()) return differences({}, wanted);
  auto database = open_broker_file(path_, by);
  if (!database) return database.error();
  auto reading = Transaction::begin(**database, Transaction::Kind::read);
  if (!reading) return reading.error();
  auto stored = load_topology(**database);
  if (!stored) return stored.error();
  auto findings = differences(stored->topology, wanted);
  auto counted = count(**database);
  if (!counted) return counted.error();
  const auto about_queues = queue_findings(topology, *counted);
  findings.insert(findings.end(), about_queues.begin(), about_queues.end());
  examine_file(findings);
  return findings;
}

Result<std::vector<QueueInfo>> EmbeddedBroker::count(Database& database) const {
  auto presence = Presence::open(path_);
  if (!presence) return presence.error();
  std::vector<QueueInfo> infos;
  std::map<std::int64_t, std::size_t> by_id;
  auto queues = database.prepare("SELECT id, name, last + 1 - next_fresh FROM queue");
  if (!queues) return queues.error();
  while (true) {
    auto row = queues->step();
    if (!row) return row.error();
    if (!*row) break;
    by_id[queues->integer(0)] = infos.size();
    infos.push_back({.name = std::string(queues->text(1)),
                     .ready = static_cast<std::uint64_t>(queues->integer(2))});
  }
  auto consumers = database.prepare("SELECT queue, id, slot FROM consumer");
  if (!consumers) return consumers.error();
  std::map<std::int64_t, bool> lives;
  while (true) {
    auto row = consumers->step();
    if (!row) return row.error();
    if (!*row) break;
    const std::int64_t id = consumers->integer(1);
    lives[id] = presence->lives(static_cast<int>(consumers->integer(2)), id);
    const auto queue = by_id.find(consumers->integer(0));
    if (lives[id] && queue != by_id.end()) ++infos[queue->second].consumers;
  }
  auto deliveries = database.prepare(
      "SELECT place >> 40, consumer, count(*) FROM delivery GROUP BY place >> 40, consumer");
  if (!deliveries) return deliveries.error();
  while (true) {
    auto row = deliveries->step();
    if (!row) return row.error();
    if (!*row) return infos;
    const auto queue = by_id.find(deliveries->integer(0));
    if (queue == by_id.end()) continue;
    // Messages of a dead consumer are given to the next one that asks.
    auto& info = infos[queue->second];
    const auto holder = lives.find(deliveries->integer(1));
    const bool held = holder != lives.end() && holder->second;
    (held ? info.unsettled : info.ready) += static_cast<std::uint64_t>(deliveries->integer(2));
  }
}

Result<std::vector<QueueInfo>> EmbeddedBroker::queues(const Topology& topology, Deadline by) {
  std::vector<QueueInfo> counted;
  if (file_exists()) {
    auto database = open_broker_file(path_, by);
    if (!database) return database.error();
    auto reading = Transaction::begin(**database, Transaction::Kind::read);
    if (!reading) return reading.error();
    auto found = count(**database);
    if (!found) return found.error();
    counted = std::move(*found);
  }
  std::map<std::string, const QueueInfo*> by_name;
  for (const QueueInfo& info : counted) by_name[info.name] = &info;
  std::vector<QueueInfo> infos;
  for (const auto& queue : with_dead_letters(topology).queues) {
    const auto found = by_name.find(queue.name);
    infos.push_back(found == by_name.end() ? QueueInfo{.name = queue.name, .exists = false}
                                           : *found->second);
  }
  return infos;
}

Result<std::unique_ptr<Subscription>> EmbeddedBroker::subscribe(std::vector<std::string> queues,
                                                                const SubscribeOptions& options,
                                                                Deadline by) {
  std::shared_ptr<Watcher> watcher;
  {
    const std::lock_guard lock(mutex_);
    if (!watcher_) {
      // The file that the watcher watches must be there.
      auto database = open_broker_file(path_, by);
      if (!database) return database.error();
      auto presence = Presence::open(path_);
      if (!presence) return presence.error();
      watcher_ = Watcher::start(path_, lease_);
    }
    watcher = watcher_;
  }
  std::vector<std::unique_ptr<EmbeddedSubscription>> opened;
  for (const auto& queue : queues) {
    auto one = EmbeddedSubscription::open(path_, queue, options, watcher, lease_, by);
    if (!one) return one.error();
    opened.push_back(std::move(*one));
  }
  if (opened.empty()) {
    return Error{.code = Code::bad_request, .message = "a subscription is of at least one queue"};
  }
  if (opened.size() == 1) return std::unique_ptr<Subscription>(std::move(opened.front()));
  return std::unique_ptr<Subscription>(
      std::make_unique<SeveralQueues>(std::move(opened), std::move(watcher)));
}

}  // namespace

Result<std::shared_ptr<Broker>> make_embedded_broker(std::string_view url) {
  constexpr std::string_view kScheme = "embedded:";
  if (!url.starts_with(kScheme)) return bad_url("an embedded broker is written embedded:PATH");
  Millis lease{10'000};
  std::string_view path = url.substr(kScheme.size());
  if (const auto question = path.find('?'); question != std::string_view::npos) {
    const std::string_view option = path.substr(question + 1);
    path = path.substr(0, question);
    constexpr std::string_view kLease = "lease=";
    auto time = option.starts_with(kLease) ? policy::parse_duration(option.substr(kLease.size()))
                                           : Result<Millis>(bad_url(""));
    if (!time || *time < Millis(500) || *time > std::chrono::hours(1)) {
      return bad_url("the only option of embedded: is lease=TIME, from 500ms to 1h");
    }
    lease = *time;
  }
  auto located = store::sqlite::path_of("sqlite:" + std::string(path));
  if (!located) {
    return bad_url("embedded:PATH needs the path of a file: " + located.error().message);
  }
  return std::shared_ptr<Broker>(std::make_shared<EmbeddedBroker>(std::move(*located), lease));
}

}  // namespace baton::broker
