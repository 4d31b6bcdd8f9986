// A system of events under faults: writers, three relays and three consumers as processes that are
// killed and stopped, a broker that restarts and a database that crashes. Afterwards the tables say
// whether each committed event has exactly one effect, in which order events were published, and
// that nothing is left.

#include <gtest/gtest.h>

#include "baton/locks.h"
#include "baton/store_admin.h"
#include "event_system.h"
#include "support/postgres_server.h"
#include "support/rabbit_server.h"
#include "support/temp_dir.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

constexpr int kAggregates = 100;
constexpr std::size_t kEvents = 3'000;
constexpr auto kTtl = 2s;  // of the relays' lanes

class FaultEvents : public ::testing::Test {
 protected:
  void begin(const EventPlace& place) {
    system_ = std::make_unique<EventSystem>(place, kAggregates, BATON_EVENT_REPLICA);
    system_->add_all(1, kTtl);
  }

  // While the writers write a part of the events; then waits until nearly all have an effect.
  void phase(const std::string& what, const std::function<void()>& strike) {
    SCOPED_TRACE(what);
    written_ += kEvents / kPhases;
    system_->write(kEvents / kPhases);
    strike();
    ASSERT_TRUE(system_->reach(written_ * 9 / 10, 120s))
        << system_->effects() << " effects of " << written_ << "\n"
        << system_->relay(0).err();
  }

  void finish_and_judge() {
    const EventVerdict verdict = system_->finish(60s);
    for (const auto& problem : verdict.problems) ADD_FAILURE() << problem;
    EXPECT_GE(verdict.committed, written_ * 9 / 10);
    RecordProperty("committed", static_cast<int>(verdict.committed));
  }

  // Longer than its lease: somebody else has its lanes, or its deliveries, when it goes on.
  static void pause_past_its_lease(Replica& replica) {
    replica.pause();
    const auto until = BootClock::now() + 2 * kTtl;
    poll_until([&] { return BootClock::now() > until; });
    replica.go_on();
  }

  static constexpr std::size_t kPhases = 6;
  std::size_t written_ = 0;
  std::unique_ptr<EventSystem> system_;
};

TEST_F(FaultEvents, every_committed_event_has_one_effect_on_postgresql_and_rabbitmq) {
  PostgresServer server(PostgresOptions{.settings = {{"max_connections", "200"}}});
  RabbitServer rabbit;
  for (const char* name : {"shop", "sink", "locks"}) {
    server.sql(std::string("CREATE DATABASE ") + name);
  }
  const std::string locks = server.url("locks");
  open_admin(locks, BootClock::now() + 30s).value()->migrate(BootClock::now() + 30s).value();
  begin({.shop = server.url("shop"),
         .sink = server.url("sink"),
         .locks = locks,
         .broker = rabbit.url()});

  phase("a relay and a consumer are killed", [&] {
    system_->relay(0).restart();
    system_->consumer(0).restart();
  });
  phase("a relay stands still for longer than its lease",
        [&] { pause_past_its_lease(system_->relay(1)); });
  phase("the broker restarts", [&] {
    rabbit.stop();
    rabbit.start();
  });
  phase("a consumer stands still", [&] { pause_past_its_lease(system_->consumer(1)); });
  phase("the database crashes", [&] { server.restart(PostgresServer::StopMode::immediate); });
  phase("all relays and consumers are killed, one after the other", [&] {
    for (std::size_t i = 0; i < 3; ++i) {
      system_->relay(i).restart();
      system_->consumer(i).restart();
    }
  });
  finish_and_judge();
}

TEST_F(FaultEvents, every_committed_event_has_one_effect_on_files) {
  TempDir dir("events");
  begin(event_files(dir));
  for (std::size_t i = 0; i < kPhases; ++i) {
    phase("a relay and a consumer are killed", [&] {
      system_->relay(i % 3).restart();
      system_->consumer((i + 1) % 3).restart();
    });
  }
  finish_and_judge();
}

}  // namespace
}  // namespace baton::test
