// A process of a system of events, for tests that kill and stop it.
//
//   event_replica role=writer shop=URL seed=N [aggregates=N]
//   event_replica role=relay shop=URL broker=URL locks=URL node=ID [ttl=MS] [first_delay=MS]
//                 [attempts=N] [declare=0] [hold_at=published|failed]
//   event_replica role=consumer sink=URL broker=URL node=ID [unlucky=PERCENT] [declare=0]
//                 [die=before_commit|after_commit]
//
// A writer adds as many events as each line of its standard input says. Each belongs to one of the
// aggregates and has the next number of it. `business` has what was committed. Some transactions
// are rolled back, some take long, some write to two aggregates.
// A consumer writes a row into `effect` for each event that it handles; some attempts fail.
// Prints "ready", and runs until its standard input ends. A relay then prints how many events were
// swept, and prints it at once if any is.
//
// declare=0: the topology is somebody else's. hold_at: at the first confirm of that kind a relay
// prints "held", and does nothing until a line says "go"; it prints "left" when it has lost a lane.
// die: at the first commit of an effect a consumer kills itself, before SQLite commits or after.

#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "baton/broker.h"
#include "baton/consumer.h"
#include "baton/locks.h"
#include "baton/outbox.h"
#include "baton/relay.h"
#include "event_tables.h"
#include "sql/connection.h"
#include "sql/transaction.h"
#include "support/event_topology.h"

namespace {

using namespace std::chrono_literals;
using baton::Millis;
using baton::Result;

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const auto at = word.find('=');
      if (at == std::string::npos) throw std::runtime_error("not NAME=VALUE: " + word);
      values_[word.substr(0, at)] = word.substr(at + 1);
    }
  }
  [[nodiscard]] std::string text(const std::string& name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::runtime_error("missing: " + name + "=…");
    return found->second;
  }
  [[nodiscard]] long number(const std::string& name, long otherwise) const {
    return values_.contains(name) ? std::stol(text(name)) : otherwise;
  }
  [[nodiscard]] bool says(const std::string& name, const std::string& value) const {
    return values_.contains(name) && values_.at(name) == value;
  }

 private:
  std::map<std::string, std::string> values_;
};

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

// Where a thread waits until it is told to go on.
class Hold {
 public:
  void wait() {
    if (std::exchange(reached_, true)) return;
    say("held");
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_; });
  }
  void release() {
    const std::lock_guard lock(mutex_);
    free_ = true;
    changed_.notify_all();
  }

 private:
  bool reached_ = false;  // by the one thread that waits
  std::mutex mutex_;
  std::condition_variable changed_;
  bool free_ = false;
};

void until_input_ends(Hold* hold = nullptr) {
  std::string line;
  while (std::getline(std::cin, line)) {
    if (hold != nullptr && line == "go") hold->release();
  }
  if (hold != nullptr) hold->release();
}

std::optional<baton::Topology> topology(const Arguments& arguments) {
  if (arguments.number("declare", 1) == 0) return std::nullopt;
  return baton::test::event_topology();
}

// ---- the writer

class Writer {
 public:
  explicit Writer(const Arguments& arguments)
      : url_(arguments.text("shop")),
        aggregates_(arguments.number("aggregates", 100)),
        random_(static_cast<std::uint64_t>(arguments.number("seed", 1))) {}

  void write(long events) {
    for (long done = 0; done < events;) {
      const bool two = chance(5);
      const bool committed = attempt(two ? 2 : 1, chance(10));
      if (committed) done += two ? 2 : 1;
    }
  }

 private:
  bool chance(int percent) { return std::uniform_int_distribution<>(1, 100)(random_) <= percent; }

  // False if nothing is known to be committed: the database was away, or it was to be rolled back.
  bool attempt(int count, bool roll_back) {
    if (!connection_ || !connection_->usable()) {
      auto opened = baton::sql::Connection::open(url_);
      if (!opened) {
        std::this_thread::sleep_for(50ms);
        return false;
      }
      connection_ = std::move(*opened);
    }
    const long first = std::uniform_int_distribution<long>(1, aggregates_ - 1)(random_);
    const Result<void> written = connection_->transaction([&](auto& tx) -> Result<void> {
      for (int i = 0; i < count; ++i) {  // in the order of the aggregates, against deadlocks
        auto added =
            baton::test::add_event(tx, outbox_, "a" + std::to_string(first + i), "Counted");
        if (!added) return added;
      }
      if (chance(3)) std::this_thread::sleep_for(20ms);
      if (roll_back) return baton::Error{.code = baton::Code::bad_request, .message = "on purpose"};
      return {};
    });
    return written.has_value();
  }

  std::string url_;
  long aggregates_;
  std::mt19937_64 random_;
  const baton::Outbox outbox_{{.exchange = std::string(baton::test::kEventExchange)}};
  std::unique_ptr<baton::sql::Connection> connection_;
};

int write(const Arguments& arguments) {
  Writer writer(arguments);
  say("ready");
  std::string line;
  while (std::getline(std::cin, line)) {
    writer.write(std::stol(line));
    say("wrote " + line);
  }
  return 0;
}

// ---- the relay

baton::LockClient open_locks(const Arguments& arguments) {
  for (int i = 0; i < 600; ++i) {
    auto locks = baton::open(arguments.text("locks"), {.owner = arguments.text("node")});
    if (locks) return *locks;
    if (!locks.error().retryable) throw std::runtime_error(locks.error().message);
    std::this_thread::sleep_for(50ms);
  }
  throw std::runtime_error("the lock store is away");
}

int relay(const Arguments& arguments) {
  auto broker = baton::Broker::open(arguments.text("broker")).value();
  Hold hold;
  const auto on_event = [&](const baton::RelayEvent& event) {
    using Kind = baton::RelayEvent::Kind;
    if (event.kind == Kind::swept) say("swept " + std::to_string(event.count));
    if (event.kind == Kind::lane_left) say("left");
    if (event.kind == Kind::published && arguments.says("hold_at", "published")) hold.wait();
    if (event.kind == Kind::failed && arguments.says("hold_at", "failed")) hold.wait();
  };
  baton::Relay relay(
      open_locks(arguments), arguments.text("shop"), std::move(broker),
      {.ttl = Millis(arguments.number("ttl", 2'000)),
       .max_attempts = static_cast<int>(arguments.number("attempts", 10)),
       .first_delay = Millis(arguments.number("first_delay", 50)),
       .topology = topology(arguments),
       .sweep_every = 20s,
       .on_error =
           [](const baton::Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); },
       .on_event = on_event});
  relay.start().value();
  say("ready");
  until_input_ends(&hold);
  relay.stop();
  say("swept in all " + std::to_string(relay.stats().swept));
  return 0;
}

// ---- the consumer

// An attempt fails now and then, as handlers do.
bool unlucky(long percent) {
  static std::mutex mutex;
  static std::mt19937 random(static_cast<std::uint32_t>(::getpid()));
  const std::lock_guard lock(mutex);
  return std::uniform_int_distribution<long>(1, 100)(random) <= percent;
}

std::string effect_of(const baton::Event& event, const std::string& node) {
  // Ids and aggregates of this test need no quoting.
  return "INSERT INTO effect (event_id, aggregate, node) VALUES ('" + event.id + "', '" +
         event.aggregate + "', '" + node + "')";
}

void run_sql(const baton::Handling& handling, const std::string& text) {
  if (handling.postgres() != nullptr) {
    PGresult* result = PQexec(handling.postgres(), text.c_str());
    const bool good = PQresultStatus(result) == PGRES_COMMAND_OK;
    PQclear(result);
    if (!good) throw std::runtime_error(PQerrorMessage(handling.postgres()));
  } else if (sqlite3_exec(handling.sqlite(), text.c_str(), nullptr, nullptr, nullptr) !=
             SQLITE_OK) {
    throw std::runtime_error(sqlite3_errmsg(handling.sqlite()));
  }
}

void die() { ::kill(::getpid(), SIGKILL); }

// The write-ahead log has the commit when its hook is called.
void die_at_commit(sqlite3* sink, const Arguments& arguments) {
  if (arguments.says("die", "before_commit")) {
    sqlite3_commit_hook(
        sink, [](void*) { return die(), 0; }, nullptr);
  } else if (arguments.says("die", "after_commit")) {
    sqlite3_wal_hook(
        sink, [](void*, sqlite3*, const char*, int) { return die(), SQLITE_OK; }, nullptr);
  }
}

int consume(const Arguments& arguments) {
  auto broker = baton::Broker::open(arguments.text("broker")).value();
  const std::string node = arguments.text("node");
  const long unlucky_percent = arguments.number("unlucky", 2);
  baton::Consumer consumer(std::move(broker), arguments.text("sink"),
                           {.name = "counter",
                            .queue = std::string(baton::test::kCounterQueue),
                            .topology = topology(arguments).value_or(baton::Topology()),
                            .retry_delays = {20ms, 50ms, 100ms, 200ms, 500ms}},
                           [&](baton::Handling& handling) -> baton::Handled {
                             run_sql(handling, effect_of(handling.event(), node));
                             if (handling.sqlite() != nullptr) {
                               die_at_commit(handling.sqlite(), arguments);
                             }
                             if (unlucky(unlucky_percent)) return baton::failed("bad luck");
                             return baton::done();
                           });
  consumer.start().value();
  say("ready");
  until_input_ends();
  if (auto stopped = consumer.stop(); !stopped) {
    std::fprintf(stderr, "%s\n", stopped.error().message.c_str());
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Arguments arguments(argc, argv);
    const std::string role = arguments.text("role");
    if (role == "writer") return write(arguments);
    if (role == "relay") return relay(arguments);
    if (role == "consumer") return consume(arguments);
    throw std::runtime_error("no such role: " + role);
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 2;
  }
}
