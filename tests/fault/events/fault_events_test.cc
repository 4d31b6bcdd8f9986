// A system of events under faults: writers, three relays and three consumers as processes that are
// killed and stopped, a broker that restarts and a database that crashes. Afterwards the tables say
// whether each committed event has exactly one effect, in which order events were published, and
// that nothing is left.

#include <gtest/gtest.h>
#include <libpq-fe.h>

#include <cstdlib>

#include "baton/inbox.h"
#include "baton/locks.h"
#include "baton/outbox.h"
#include "baton/store_admin.h"
#include "event_history.h"
#include "support/event_topology.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/rabbit_server.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

constexpr int kAggregates = 100;
constexpr auto kTtl = 2s;  // of the relays' lanes

// $BATON_EVENTS_COUNT: `./dev torture events` has more of everything.
int number_from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

class Replica {
 public:
  explicit Replica(std::vector<std::string> arguments) : arguments_(std::move(arguments)) {
    arguments_.insert(arguments_.begin(), BATON_EVENT_REPLICA);
    start();
  }
  void start() { process_ = std::make_unique<Process>(ProcessOptions{.argv = arguments_}); }
  void restart() {  // as after a crash
    process_->kill(SIGKILL);
    process_->wait();
    collect();
    start();
  }
  void pause() { ASSERT_TRUE(stop_still(process_->pid())); }
  void go_on() { process_->kill(SIGCONT); }
  void finish() {
    process_->close_stdin();
    const auto status = process_->wait(60s);
    ASSERT_TRUE(status && status->success()) << process_->err();
    collect();
  }
  Process& process() { return *process_; }
  // Of all its lives.
  [[nodiscard]] const std::string& said() const { return said_; }

 private:
  void collect() { said_ += process_->out(); }

  std::vector<std::string> arguments_;
  std::unique_ptr<Process> process_;
  std::string said_;
};

class FaultEvents : public ::testing::Test {
 protected:
  // The tables, three relays, three consumers, two writers and a spy.
  void begin(const std::string& shop_url, const std::string& sink_url, const std::string& locks_url,
             const std::string& broker_url) {
    shop_url_ = shop_url;
    sink_url_ = sink_url;
    shop_ = open(shop_url);
    sink_ = open(sink_url);
    if (auto* postgres = shop_->postgres()) {
      install_outbox(postgres).value();
      install_inbox(sink_->postgres()).value();
    } else {
      install_outbox(shop_->sqlite()).value();
      install_inbox(sink_->sqlite()).value();
    }
    make_event_tables(*shop_, *sink_, kAggregates);
    broker_ = Broker::open(broker_url).value();
    ASSERT_TRUE(poll_until(
        [&] { return broker_->declare(event_topology(), BootClock::now() + 10s).has_value(); }));
    spying_ = std::jthread([this](const std::stop_token& stop) { spy_.watch(*broker_, stop); });
    for (int i = 0; i < 3; ++i) {
      const std::string number = std::to_string(i);
      relays_.push_back(std::make_unique<Replica>(std::vector<std::string>{
          "role=relay", "shop=" + shop_url, "broker=" + broker_url, "locks=" + locks_url,
          "node=relay-" + number,
          "ttl=" + std::to_string(std::chrono::milliseconds(kTtl).count())}));
      consumers_.push_back(std::make_unique<Replica>(std::vector<std::string>{
          "role=consumer", "sink=" + sink_url, "broker=" + broker_url, "node=consumer-" + number}));
    }
    for (int i = 0; i < 2; ++i) {
      writers_.push_back(std::make_unique<Replica>(std::vector<std::string>{
          "role=writer", "shop=" + shop_url, "aggregates=" + std::to_string(kAggregates),
          "seed=" + std::to_string(seed_ * 2 + i)}));
    }
  }

  // While the writers write a part of the events; then waits until nearly all have an effect.
  void phase(const std::string& what, const std::function<void()>& strike) {
    SCOPED_TRACE(what);
    ++phases_;
    const int part = events_ / kPhases / 2;
    for (auto& writer : writers_) writer->process().write(std::to_string(part) + "\n");
    strike();
    const std::size_t enough = static_cast<std::size_t>(phases_) * part * 2 * 9 / 10;
    ASSERT_TRUE(poll_until([&] { return effects() >= enough; }, 120s, 50ms))
        << effects() << " effects of " << enough << "\n"
        << relays_[0]->process().err();
  }

  std::size_t effects() {
    if (!sink_->usable()) sink_ = open(sink_url_);
    const auto rows = sink_->query("SELECT count(*) FROM effect");
    return rows ? static_cast<std::size_t>(rows->front().integer(0)) : 0;
  }

  void finish_and_judge() {
    for (auto& writer : writers_) ASSERT_NO_FATAL_FAILURE(writer->finish());
    shop_ = open(shop_url_);
    sink_ = open(sink_url_);
    poll_until([&] { return judge_events(*shop_, *sink_, spy_).problems.empty(); }, 60s, 200ms);
    const EventVerdict verdict = judge_events(*shop_, *sink_, spy_);
    for (const auto& problem : verdict.problems) ADD_FAILURE() << problem;
    EXPECT_GE(verdict.committed, static_cast<std::size_t>(events_ / kPhases * kPhases * 9 / 10));
    for (auto& replica : relays_) {
      ASSERT_NO_FATAL_FAILURE(replica->finish());
      EXPECT_EQ(replica->said().find("swept in all 0"), replica->said().find("swept"))
          << replica->said();
    }
    for (auto& replica : consumers_) ASSERT_NO_FATAL_FAILURE(replica->finish());
    RecordProperty("committed", static_cast<int>(verdict.committed));
  }

  // Longer than its lease: somebody else has its lanes, or its deliveries, when it goes on.
  static void outlast_the_lease() {
    const auto until = BootClock::now() + 2 * kTtl;
    poll_until([&] { return BootClock::now() > until; });
  }

  static std::unique_ptr<sql::Connection> open(const std::string& url) {
    std::unique_ptr<sql::Connection> connection;
    poll_until([&] {
      auto opened = sql::Connection::open(url);
      if (opened) connection = std::move(*opened);
      return connection != nullptr;
    });
    if (!connection) throw std::runtime_error("cannot open " + url);
    return connection;
  }

  static constexpr int kPhases = 6;
  const int events_ = number_from_environment("BATON_EVENTS_COUNT", 3'000);
  const int seed_ = number_from_environment("BATON_EVENTS_SEED", 1);
  int phases_ = 0;
  std::string shop_url_;
  std::string sink_url_;
  std::unique_ptr<sql::Connection> shop_;
  std::unique_ptr<sql::Connection> sink_;
  std::shared_ptr<Broker> broker_;
  Spy spy_;
  std::vector<std::unique_ptr<Replica>> relays_;
  std::vector<std::unique_ptr<Replica>> consumers_;
  std::vector<std::unique_ptr<Replica>> writers_;
  std::jthread spying_;
};

TEST_F(FaultEvents, every_committed_event_has_one_effect_on_postgresql_and_rabbitmq) {
  PostgresServer server(PostgresOptions{.settings = {{"max_connections", "200"}}});
  RabbitServer rabbit;
  for (const char* name : {"shop", "sink", "locks"}) {
    server.sql(std::string("CREATE DATABASE ") + name);
  }
  const std::string locks = server.url("locks");
  open_admin(locks, BootClock::now() + 30s).value()->migrate(BootClock::now() + 30s).value();
  ASSERT_NO_FATAL_FAILURE(begin(server.url("shop"), server.url("sink"), locks, rabbit.url()));

  phase("a relay and a consumer are killed", [&] {
    relays_[0]->restart();
    consumers_[0]->restart();
  });
  phase("a relay stands still for longer than its lease", [&] {
    relays_[1]->pause();
    outlast_the_lease();
    relays_[1]->go_on();
  });
  phase("the broker restarts", [&] {
    rabbit.stop();
    rabbit.start();
  });
  phase("a consumer stands still", [&] {
    consumers_[1]->pause();
    outlast_the_lease();
    consumers_[1]->go_on();
  });
  phase("the database crashes", [&] { server.restart(PostgresServer::StopMode::immediate); });
  phase("all relays and consumers are killed, one after the other", [&] {
    for (int i = 0; i < 3; ++i) {
      relays_[i]->restart();
      consumers_[i]->restart();
    }
  });
  finish_and_judge();
}

TEST_F(FaultEvents, every_committed_event_has_one_effect_on_files) {
  TempDir dir("events");
  const auto file = [&](const char* name) { return "sqlite:" + (dir / name).string(); };
  ASSERT_NO_FATAL_FAILURE(begin(file("shop.db"), file("sink.db"), file("locks.db"),
                                "embedded:" + (dir / "broker.db").string()));
  for (int i = 0; i < kPhases; ++i) {
    phase("a relay and a consumer are killed", [&] {
      relays_[i % 3]->restart();
      consumers_[(i + 1) % 3]->restart();
    });
  }
  finish_and_judge();
}

}  // namespace
}  // namespace baton::test
