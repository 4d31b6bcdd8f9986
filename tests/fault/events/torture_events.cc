// The fault run of events, larger and in another order with each seed: `./dev torture events`.
//
//   torture_events [seed=N] [minutes=N] [events=N] [backlog=N]
//
// One PostgreSQL and one RabbitMQ for all rounds. The outbox has `backlog` rows that are SENT, a
// transaction keeps the oldest xmin of the server where it is, and half of the events of a round
// are there before its relays start. The faults of a round come in an order that its seed says.
// Rounds with the next seeds follow until one fails or the time is over; the first is always whole.

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "baton/locks.h"
#include "baton/store_admin.h"
#include "event_system.h"
#include "support/event_topology.h"
#include "support/postgres_server.h"
#include "support/rabbit_server.h"
#include "support/wait.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

constexpr int kAggregates = 100;
constexpr Millis kTtl{2'000};
constexpr auto kLongest = 300s;  // until a phase has its effects

struct Settings {
  int seed = 1;
  int minutes = 10;
  int events = 20'000;
  int backlog = 1'000'000;
};

Settings settings_of(int argc, char** argv) {
  Settings settings;
  const std::map<std::string, int*> names{{"seed", &settings.seed},
                                          {"minutes", &settings.minutes},
                                          {"events", &settings.events},
                                          {"backlog", &settings.backlog}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const auto at = word.find('=');
    const auto found = names.find(word.substr(0, at));
    if (at == std::string::npos || found == names.end()) {
      throw std::runtime_error("unknown: " + word);
    }
    *found->second = std::stoi(word.substr(at + 1));
  }
  return settings;
}

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// The rows of one INSERT. $1: how many; a number belongs to the aggregate number % kAggregates + 1.
std::string insert_events(const std::string& status, int count, const std::string& from) {
  return "INSERT INTO outbox_events (lane, slot, status, sent_at, event_id, type, aggregate_type,"
         " aggregate_id, exchange, routing_key, payload, headers, version)"
         " SELECT hashtextextended(aggregate COLLATE \"C\", 0) & 15,"
         " floor(extract(epoch FROM clock_timestamp()) / 86400)::bigint & 7, '" +
         status + "', " + (status == "SENT" ? "clock_timestamp()" : "NULL") +
         ", id, 'Counted', '', aggregate, '" + std::string(kEventExchange) +
         "', 'counted', json_build_object('n', number)::text, '{}', 1 FROM " + from +
         " ORDER BY n LIMIT " + std::to_string(count);
}

std::string numbered(int count) {
  const std::string all = std::to_string(kAggregates);
  return "(SELECT n, gen_random_uuid() AS id, 'a' || 1 + n % " + all + " AS aggregate, 1 + n / " +
         all + " AS number FROM generate_series(0, " + std::to_string(count - 1) + ") n)";
}

// Keeps the oldest xmin where it is.
class OpenTransaction {
 public:
  explicit OpenTransaction(std::string url) : url_(std::move(url)) { hold(); }
  // Again, if the server has ended it.
  void hold() {
    if (connection_ && connection_->still_there()) return;
    const bool held = poll_until([&] {
      auto opened = sql::Connection::open(url_);
      if (!opened) return false;
      connection_ = std::move(*opened);
      return connection_->query("BEGIN ISOLATION LEVEL REPEATABLE READ").has_value() &&
             connection_->query("SELECT pg_current_xact_id()").has_value();
    });
    if (!held) throw std::runtime_error("cannot hold a transaction open");
  }

 private:
  std::string url_;
  std::unique_ptr<sql::Connection> connection_;
};

class Torture {
 public:
  explicit Torture(Settings settings) : settings_(settings) {
    for (const char* name : {"shop", "sink", "locks"}) {
      server_.sql(std::string("CREATE DATABASE ") + name);
    }
    place_ = {.shop = server_.url("shop"),
              .sink = server_.url("sink"),
              .locks = server_.url("locks"),
              .broker = rabbit_.url()};
    const Deadline by = BootClock::now() + 30s;
    open_admin(place_.locks, by).value()->migrate(by).value();
    install_outbox(sql::Connection::open(place_.shop).value()->postgres()).value();
    if (settings_.backlog > 0) {
      server_.sql(insert_events("SENT", settings_.backlog, numbered(settings_.backlog) + " made"),
                  "shop");
    }
    server_.sql("VACUUM ANALYZE outbox_events", "shop");
  }

  // Whether nothing was wrong.
  bool round(int seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    EventSystem system(place_, kAggregates, BATON_EVENT_REPLICA);
    OpenTransaction open(place_.shop);
    const int before = settings_.events / 2;
    add_pending(before);
    system.add_all(seed, kTtl);
    std::size_t written = static_cast<std::size_t>(before);
    const auto faults = faults_of(random);
    const int part = std::max(2, settings_.events / 2 / static_cast<int>(faults.size()));
    for (const auto& [name, strike] : faults) {
      say("  " + name);
      system.write(part);
      written += static_cast<std::size_t>(part) / 2 * 2;
      strike(system, random);
      open.hold();
      if (!system.reach(written * 9 / 10, kLongest)) {
        say("FAILED in this phase: " + std::to_string(system.effects()) + " effects of " +
            std::to_string(written) + "\n" + system.relay(0).err() + system.consumer(0).err());
        return false;
      }
    }
    const EventVerdict verdict = system.finish(kLongest);
    for (const auto& problem : verdict.problems) say("FAILED: " + problem);
    if (verdict.committed < written * 9 / 10) {
      say("FAILED: only " + std::to_string(verdict.committed) + " events were committed");
      return false;
    }
    rounds_ += 1;
    events_ += verdict.committed;
    faults_ += faults.size();
    say("  " + std::to_string(verdict.committed) + " events, " +
        std::to_string(verdict.problems.size()) + " problems");
    return verdict.problems.empty();
  }

  void tell() const {
    say("checked in " + std::to_string(rounds_) + " rounds with " + std::to_string(faults_) +
        " faults, beside " + std::to_string(settings_.backlog) +
        " rows of backlog and a pinned xmin: each of " + std::to_string(events_) +
        " committed events has exactly one effect, no other has any; first occurrences are in the "
        "order of their aggregates; no row is PENDING or FAILED, none used an attempt, nothing is "
        "dead, nothing was swept, every process ended by itself");
  }

 private:
  using Random = std::mt19937_64;
  struct Fault {
    std::string name;
    std::function<void(EventSystem&, Random&)> strike;
  };

  void add_pending(int count) {
    auto shop = sql::Connection::open(place_.shop).value();
    shop->script("BEGIN; CREATE TEMPORARY TABLE made ON COMMIT DROP AS SELECT * FROM " +
                 numbered(count) + " x; " + insert_events("PENDING", count, "made") +
                 ";"
                 "INSERT INTO business SELECT id, aggregate, number FROM made;"
                 "UPDATE aggregate SET number = (SELECT count(*) FROM made WHERE aggregate = name);"
                 "COMMIT")
        .value();
  }

  static std::size_t one_of_three(Random& random) { return random() % 3; }

  static void pause(Replica& replica, Millis time) {
    replica.pause();
    std::this_thread::sleep_for(time);  // the fault itself
    replica.go_on();
  }

  // Each kind of fault, two alarms, and some once more; in random order.
  std::vector<Fault> faults_of(Random& random) {
    const Fault alarm{"the broker raises a memory alarm", [this](EventSystem&, Random& r) {
                        rabbit_.set_memory_alarm(true);
                        std::this_thread::sleep_for(Millis(500 + r() % 3'000));
                        rabbit_.set_memory_alarm(false);
                      }};
    const std::vector<Fault> kinds{
        {"a relay is killed",
         [](EventSystem& system, Random& r) { system.relay(one_of_three(r)).restart(); }},
        {"a consumer is killed",
         [](EventSystem& system, Random& r) { system.consumer(one_of_three(r)).restart(); }},
        {"a relay stands still for longer than its lease",
         [](EventSystem& system, Random& r) { pause(system.relay(one_of_three(r)), 2 * kTtl); }},
        {"a consumer stands still",
         [](EventSystem& system, Random& r) {
           pause(system.consumer(one_of_three(r)), Millis(r() % 4'000));
         }},
        {"the broker restarts",
         [this](EventSystem&, Random&) {
           rabbit_.stop();
           rabbit_.start();
         }},
        {"the broker crashes",
         [this](EventSystem&, Random&) {
           rabbit_.crash();
           rabbit_.start();
         }},
        {"the database crashes",
         [this](EventSystem&, Random&) { server_.restart(PostgresServer::StopMode::immediate); }},
        {"the database is away for a while",
         [this](EventSystem&, Random& r) {
           server_.stop();
           std::this_thread::sleep_for(Millis(r() % 3'000));
           server_.start();
         }},
        {"all relays and consumers are killed",
         [](EventSystem& system, Random&) {
           for (std::size_t i = 0; i < 3; ++i) {
             system.relay(i).restart();
             system.consumer(i).restart();
           }
         }},
        alarm};
    std::vector<Fault> faults = kinds;
    faults.push_back(alarm);
    for (int i = 0; i < 3; ++i) faults.push_back(kinds[random() % kinds.size()]);
    for (std::size_t i = faults.size() - 1; i > 0; --i) {  // as every library shuffles
      std::swap(faults[i], faults[random() % (i + 1)]);
    }
    return faults;
  }

  const Settings settings_;
  PostgresServer server_{{.settings = {{"max_connections", "200"}}}};
  RabbitServer rabbit_;
  EventPlace place_;
  std::size_t rounds_ = 0;
  std::size_t events_ = 0;
  std::size_t faults_ = 0;
};

int torture(const Settings& settings) {
  const auto until = BootClock::now() + std::chrono::minutes(settings.minutes);
  say("preparing " + std::to_string(settings.backlog) + " rows of backlog");
  Torture rounds(settings);
  int seed = settings.seed;
  do {
    say("seed " + std::to_string(seed));
    if (!rounds.round(seed)) {
      say("seed " + std::to_string(seed) +
          " failed; once more: ./dev torture events --minutes 0 "
          "--seed " +
          std::to_string(seed));
      return 1;
    }
    ++seed;
  } while (BootClock::now() < until);
  say("seeds " + std::to_string(settings.seed) + " to " + std::to_string(seed - 1));
  rounds.tell();
  return 0;
}

}  // namespace
}  // namespace baton::test

int main(int argc, char** argv) {
  try {
    return baton::test::torture(baton::test::settings_of(argc, argv));
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 2;
  }
}
