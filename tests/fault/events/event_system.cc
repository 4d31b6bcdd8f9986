#include "event_system.h"

#include <csignal>
#include <stdexcept>
#include <utility>

#include "baton/inbox.h"
#include "baton/outbox.h"
#include "sql/transaction.h"
#include "support/event_topology.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::seconds kToEnd{60};

std::unique_ptr<sql::Connection> open(const std::string& url) {
  std::unique_ptr<sql::Connection> connection;
  std::string problem;
  poll_until([&] {
    auto opened = sql::Connection::open(url);
    if (opened) {
      connection = std::move(*opened);
    } else {
      problem = opened.error().message;
    }
    return connection != nullptr;
  });
  if (!connection) throw std::runtime_error(problem);
  return connection;
}

}  // namespace

EventPlace event_files(const TempDir& dir) {
  const auto file = [&](const char* name) { return (dir / name).string(); };
  return {.shop = "sqlite:" + file("shop.db"),
          .sink = "sqlite:" + file("sink.db"),
          .locks = "sqlite:" + file("locks.db"),
          .broker = "embedded:" + file("broker.db") + "?lease=1s"};
}

// ---- a process

Replica::Replica(std::vector<std::string> command) : command_(std::move(command)) { start(); }

void Replica::start() { process_ = std::make_unique<Process>(ProcessOptions{.argv = command_}); }

void Replica::kill() {
  process_->kill(SIGKILL);
  (void)died_of();
}

void Replica::restart() {
  kill();
  said_ += process_->out();
  start();
}

void Replica::pause() {
  if (!stop_still(process_->pid())) throw std::runtime_error("a replica does not stop");
}

void Replica::go_on() { process_->kill(SIGCONT); }

int Replica::died_of() {
  const auto status = process_->wait(kToEnd);
  if (!status) throw std::runtime_error("a replica does not end: " + process_->err());
  return status->signal;
}

std::string Replica::finish() {
  process_->close_stdin();
  const auto status = process_->wait(kToEnd);
  if (!status) return command_.at(1) + " does not end: " + process_->err();
  if (!status->success()) return command_.at(1) + " " + status->describe() + process_->err();
  return {};
}

// ---- all of them

EventSystem::EventSystem(EventPlace place, int aggregates, std::string program)
    : place_(std::move(place)),
      aggregates_(aggregates),
      program_(std::move(program)),
      shop_(open(place_.shop)),
      sink_(open(place_.sink)),
      broker_(Broker::open(place_.broker).value()) {
  if (auto* postgres = shop_->postgres()) {
    install_outbox(postgres).value();
    install_inbox(sink_->postgres()).value();
  } else {
    install_outbox(shop_->sqlite()).value();
    install_inbox(sink_->sqlite()).value();
  }
  make_event_tables(*shop_, *sink_, aggregates_);
}

EventSystem::~EventSystem() = default;

void EventSystem::declare(const Topology& topology) {
  std::string problem;
  const bool declared = poll_until([&] {
    const auto done = broker_->declare(topology, BootClock::now() + 10s);
    if (!done) problem = done.error().message;
    return done.has_value();
  });
  if (!declared) throw std::runtime_error(problem);
}

void EventSystem::watch() {
  spying_ = std::jthread([this](const std::stop_token& stop) { spy_.watch(*broker_, stop); });
}

Replica& EventSystem::add(Replicas& replicas, const std::string& role,
                          std::vector<std::string> words, const std::vector<std::string>& more) {
  std::vector<std::string> command{program_, "role=" + role,
                                   "node=" + role + "-" + std::to_string(replicas.size())};
  command.insert(command.end(), words.begin(), words.end());
  command.insert(command.end(), more.begin(), more.end());
  return *replicas.emplace_back(std::make_unique<Replica>(std::move(command)));
}

Replica& EventSystem::add_relay(std::vector<std::string> more) {
  return add(relays_, "relay",
             {"shop=" + place_.shop, "broker=" + place_.broker, "locks=" + place_.locks}, more);
}

Replica& EventSystem::add_consumer(std::vector<std::string> more) {
  return add(consumers_, "consumer", {"sink=" + place_.sink, "broker=" + place_.broker}, more);
}

Replica& EventSystem::add_writer(int seed) {
  return add(writers_, "writer",
             {"shop=" + place_.shop, "aggregates=" + std::to_string(aggregates_),
              "seed=" + std::to_string(seed)},
             {});
}

void EventSystem::add_all(int seed, Millis ttl) {
  declare(event_topology());
  watch();
  for (int i = 0; i < 3; ++i) {
    // All attempts take less than a tenth of a second: every outage is longer, and may use none.
    add_relay({"ttl=" + std::to_string(ttl.count()), "attempts=3", "first_delay=20"});
    add_consumer();
  }
  for (int i = 0; i < 2; ++i) add_writer(seed * 2 + i);
}

void EventSystem::write(int events) {
  for (auto& writer : writers_) {
    writer->say(std::to_string(events / static_cast<int>(writers_.size())));
  }
}

void EventSystem::write_one(const std::string& aggregate, const std::string& type) {
  const Outbox outbox({.exchange = std::string(kEventExchange)});
  shop_
      ->transaction([&](sql::Transaction& tx) -> Result<void> {
        return add_event(tx, outbox, aggregate, type);
      })
      .value();
}

void EventSystem::pause_between_writes(Replica& replica) {
  const bool paused = poll_until([&] {
    replica.pause();
    for (const std::string& url : {place_.shop, place_.locks}) {
      const auto file = sql::Connection::open(url, {.statement_timeout = 100ms});
      const bool free = file && (*file)->query("BEGIN IMMEDIATE") && (*file)->query("ROLLBACK");
      if (free) continue;
      replica.go_on();
      return false;
    }
    return true;
  });
  if (!paused) throw std::runtime_error("it cannot be paused outside of a transaction");
}

void EventSystem::reopen() {
  if (!shop_->usable()) shop_ = open(place_.shop);
  if (!sink_->usable()) sink_ = open(place_.sink);
}

std::size_t EventSystem::effects() {
  reopen();
  const auto rows = sink_->query("SELECT count(*) FROM effect");
  return rows ? static_cast<std::size_t>(rows->front().integer(0)) : 0;
}

bool EventSystem::reach(std::size_t enough, std::chrono::nanoseconds limit) {
  return poll_until([&] { return effects() >= enough; }, limit, 50ms);
}

bool EventSystem::settled() {
  reopen();
  const auto pending = shop_->query("SELECT count(*) FROM outbox_events WHERE status = 'PENDING'");
  const auto kept = sink_->query("SELECT count(*) FROM inbox_events WHERE status = 'RETRY'");
  if (!pending || !kept || pending->front().integer(0) + kept->front().integer(0) > 0) return false;
  const auto queues = broker_->queues(event_topology(), BootClock::now() + 10s);
  if (!queues) return false;
  for (const auto& queue : *queues) {
    if (queue.ready + queue.unsettled > 0) return false;
  }
  return true;
}

EventVerdict EventSystem::judge(const EventLimits& limits) {
  reopen();
  return judge_events(*shop_, *sink_, spy_, limits);
}

EventVerdict EventSystem::finish(std::chrono::nanoseconds limit) {
  std::vector<std::string> ends;
  const auto end = [&](Replica& replica) {
    if (std::string problem = replica.finish(); !problem.empty()) ends.push_back(problem);
  };
  for (auto& writer : writers_) end(*writer);
  poll_until([&] { return settled() && judge().problems.empty(); }, limit, 200ms);
  EventVerdict verdict = judge();
  for (auto& relay : relays_) {
    end(*relay);
    const std::string said = relay->said();
    if (said.find("swept") != said.find("swept in all 0")) verdict.problems.push_back(said);
  }
  for (auto& consumer : consumers_) end(*consumer);
  verdict.problems.insert(verdict.problems.end(), ends.begin(), ends.end());
  return verdict;
}

}  // namespace baton::test
