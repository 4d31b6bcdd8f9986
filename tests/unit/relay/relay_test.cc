// The relay of an outbox in an SQLite file, with the embedded broker. Times are scaled.

#include "baton/relay.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "baton/memory_store.h"
#include "baton/outbox.h"
#include "relay/look.h"
#include "support/relay_support.h"

namespace baton::test {
namespace {

using namespace std::chrono_literals;

class SqliteRelay : public ::testing::Test {
 protected:
  SqliteRelay() {
    sqlite3_open((dir_ / "shop.db").c_str(), &database_);
    sqlite3_busy_timeout(database_, 30'000);
    sql("PRAGMA journal_mode = WAL");
    install_outbox(database_).value();
    broker_->declare(shop_topology(), soon()).value();
  }
  ~SqliteRelay() override { sqlite3_close(database_); }

  std::string sql(const std::string& text) {
    std::string first;
    const auto keep = [](void* into, int, char** values, char**) {
      auto& kept = *static_cast<std::string*>(into);
      if (kept.empty() && values[0] != nullptr) kept = values[0];
      return 0;
    };
    char* problem = nullptr;
    if (sqlite3_exec(database_, text.c_str(), keep, &first, &problem) != SQLITE_OK) {
      const std::string what = problem;
      sqlite3_free(problem);
      throw std::runtime_error(what);
    }
    return first;
  }

  // In a transaction of its own.
  std::string add(const std::string& aggregate, const std::string& type = "OrderPlaced",
                  const std::string& payload = "{}") {
    sql("BEGIN IMMEDIATE");
    auto id = outbox_.add(database_, {.type = type, .aggregate = aggregate, .payload = payload});
    sql("COMMIT");
    return id.value();
  }

  std::string url() const { return "sqlite:" + (dir_ / "shop.db").string(); }
  RelayOptions options() {
    return {.ttl = 2s, .max_attempts = 3, .first_delay = 20ms, .on_error = [this](const Error& e) {
              const std::lock_guard lock(mutex_);
              errors_ += e.message + "\n";
            }};
  }
  std::string errors() const {
    const std::lock_guard lock(mutex_);
    return errors_;
  }
  std::string status(const std::string& id) {
    return sql("SELECT status FROM outbox_events WHERE event_id = '" + id + "'");
  }
  bool becomes(const std::string& id, const std::string& wanted) {
    return poll_until([&] { return status(id) == wanted; });
  }

  TempDir dir_ = TempDir::in_memory("relay");
  sqlite3* database_ = nullptr;
  LockClient locks_ = LockClient::make(make_memory_store(), {.owner = "one"}).value();
  std::shared_ptr<Broker> broker_ =
      Broker::open("embedded:" + (dir_ / "broker.db").string()).value();
  const Outbox outbox_{{.exchange = "shop"}};
  mutable std::mutex mutex_;
  std::string errors_;
};

TEST_F(SqliteRelay, an_event_is_published_if_and_only_if_its_transaction_commits) {
  Relay relay(locks_, url(), broker_, options());
  relay.start().value();
  const Spy spy(broker_, "all");
  sql("BEGIN IMMEDIATE");
  const auto undone = outbox_.add(database_, {.type = "OrderPlaced", .aggregate = "o-1"}).value();
  sql("ROLLBACK");
  const std::string id = add("o-1", "OrderPlaced", R"({"total":3})");
  ASSERT_TRUE(spy.wait_for(1)) << errors();
  const Message message = spy.messages().front();
  EXPECT_EQ(message.id, id);
  EXPECT_EQ(message.body, R"({"total":3})");
  EXPECT_EQ(message.headers.at("aggregate"), "o-1");
  EXPECT_EQ(message.headers.at("type"), "OrderPlaced");
  EXPECT_EQ(message.headers.at("x-lane"), "0");
  EXPECT_TRUE(becomes(id, "SENT"));
  EXPECT_NE(sql("SELECT sent_at FROM outbox_events"), "");
  relay.stop();
  relay.stop();
  EXPECT_EQ(spy.count(), 1U);
  EXPECT_FALSE(spy.has(undone));
  EXPECT_EQ(relay.stats().published, 1U);
  EXPECT_EQ(errors(), "");
}

TEST_F(SqliteRelay, events_of_an_aggregate_come_in_order_also_when_they_waited) {
  for (int i = 0; i < 300; ++i) {
    add("o-" + std::to_string(i % 3), "OrderPlaced", std::to_string(i));
  }
  Relay relay(locks_, url(), broker_, options());
  relay.start().value();
  const Spy spy(broker_, "all");
  for (int i = 300; i < 400; ++i) {
    add("o-" + std::to_string(i % 3), "OrderPlaced", std::to_string(i));
  }
  ASSERT_TRUE(spy.wait_for(400)) << errors();
  for (int a = 0; a < 3; ++a) {
    std::vector<std::string> expected;
    for (int i = a; i < 400; i += 3) expected.push_back(std::to_string(i));
    EXPECT_EQ(spy.bodies("o-" + std::to_string(a)), expected);
  }
  relay.stop();
  EXPECT_EQ(spy.deliveries(), 400U);
  EXPECT_EQ(sql("SELECT count(*) FROM outbox_events WHERE status = 'SENT'"), "400");
}

TEST_F(SqliteRelay, an_unroutable_event_fails_and_holds_only_its_aggregate) {
  Relay relay(locks_, url(), broker_, options());
  relay.start().value();
  const Spy spy(broker_, "all");
  const auto lost = add("o-1", "LostOrder");
  const auto follower = add("o-1");
  const auto other = add("o-2");
  ASSERT_TRUE(becomes(lost, "FAILED")) << errors();
  ASSERT_TRUE(becomes(other, "SENT"));
  EXPECT_EQ(sql("SELECT retry_count FROM outbox_events WHERE event_id = '" + lost + "'"), "3");
  EXPECT_NE(sql("SELECT last_error FROM outbox_events WHERE event_id = '" + lost + "'")
                .find("unroutable"),
            std::string::npos);
  EXPECT_EQ(status(follower), "PENDING");
  EXPECT_FALSE(spy.has(follower));
  EXPECT_EQ(relay.stats().failed, 1U);
  EXPECT_EQ(relay.stats().retries, 2U);
  // As `baton outbox retry` does it, after somebody has bound a queue.
  Topology more = shop_topology();
  more.bindings.push_back({.exchange = "shop", .pattern = "lost.#", .queue = "all"});
  broker_->declare(more, soon()).value();
  sql("UPDATE outbox_events SET status = 'PENDING', retry_count = 0, next_retry_at = 0"
      " WHERE event_id = '" +
      lost + "'");
  ASSERT_TRUE(spy.wait_for(3)) << errors();
  EXPECT_EQ(spy.bodies("o-1").size(), 2U);
  EXPECT_EQ(spy.messages()[1].id, lost);
  EXPECT_EQ(spy.messages()[2].id, follower);
  EXPECT_TRUE(becomes(follower, "SENT"));
}

TEST_F(SqliteRelay, an_unknown_exchange_fails_its_events_alone_and_is_named) {
  Relay relay(locks_, url(), broker_, options());
  relay.start().value();
  sql("BEGIN IMMEDIATE");
  const auto lost =
      outbox_.add(database_, {.type = "OrderPlaced", .aggregate = "o-1", .exchange = "nowhere"})
          .value();
  sql("COMMIT");
  const auto other = add("o-2");
  ASSERT_TRUE(becomes(lost, "FAILED")) << errors();
  ASSERT_TRUE(becomes(other, "SENT")) << errors();
  EXPECT_NE(sql("SELECT last_error FROM outbox_events WHERE event_id = '" + lost + "'")
                .find("no exchange 'nowhere'"),
            std::string::npos);
}

TEST_F(SqliteRelay, the_followers_of_a_discarded_event_go_on) {
  Relay relay(locks_, url(), broker_, options());
  relay.start().value();
  const Spy spy(broker_, "all");
  constexpr int kFollowers = 500;  // more than go into memory at once
  const auto lost = add("o-1", "LostOrder");
  std::vector<std::string> followers;
  for (int i = 0; i < kFollowers; ++i)
    followers.push_back(add("o-1", "OrderPlaced", std::to_string(i)));
  ASSERT_TRUE(becomes(lost, "FAILED"));
  EXPECT_EQ(spy.count(), 0U);
  sql("UPDATE outbox_events SET status = 'DISCARDED', next_retry_at = NULL WHERE event_id = '" +
      lost + "'");
  ASSERT_TRUE(spy.wait_for(kFollowers)) << errors();
  std::vector<std::string> expected;
  for (int i = 0; i < kFollowers; ++i) expected.push_back(std::to_string(i));
  EXPECT_EQ(spy.bodies("o-1"), expected);
  EXPECT_FALSE(spy.has(lost));
}

TEST_F(SqliteRelay, with_skip_the_followers_of_a_failed_event_go_on) {
  auto with = options();
  with.on_failed = RelayOnFailed::skip;
  Relay relay(locks_, url(), broker_, with);
  relay.start().value();
  const auto lost = add("o-1", "LostOrder");
  const auto follower = add("o-1");
  EXPECT_TRUE(becomes(lost, "FAILED"));
  EXPECT_TRUE(becomes(follower, "SENT"));
}

TEST_F(SqliteRelay, a_full_queue_delays_only_its_route_and_uses_no_attempt) {
  Relay relay(locks_, url(), broker_, options());
  relay.start().value();
  const Spy spy(broker_, "all");
  std::vector<std::string> waiting;
  for (int i = 0; i < 5; ++i) waiting.push_back(add("f-" + std::to_string(i), "FullStock"));
  ASSERT_TRUE(poll_until([&] { return relay.stats().refused > 0; })) << errors();
  const auto other = add("o-1");
  ASSERT_TRUE(becomes(other, "SENT")) << errors();
  EXPECT_EQ(sql("SELECT count(*) FROM outbox_events WHERE status = 'SENT' AND type = 'FullStock'"),
            "2");
  {
    const Spy drain(broker_, "full");
    ASSERT_TRUE(drain.wait_for(5)) << errors();
    for (const auto& id : waiting) EXPECT_TRUE(becomes(id, "SENT"));
  }
  EXPECT_EQ(sql("SELECT max(retry_count) FROM outbox_events"), "0");
  EXPECT_EQ(relay.stats().failed, 0U);
}

// A broker that takes the messages of one routing key and keeps their confirms, as RabbitMQ does
// while a quorum queue has no majority.
class SilentBroker final : public Broker {
 public:
  SilentBroker(std::shared_ptr<Broker> real, std::string key)
      : real_(std::move(real)), key_(std::move(key)) {}

  void answer() { *silent_ = false; }
  [[nodiscard]] std::size_t kept() const { return *kept_; }

  Result<void> declare(const Topology& topology, Deadline by) override {
    return real_->declare(topology, by);
  }
  Result<std::vector<BrokerFinding>> check(const Topology& topology, Deadline by) override {
    return real_->check(topology, by);
  }
  Result<std::vector<QueueInfo>> queues(const Topology& topology, Deadline by) override {
    return real_->queues(topology, by);
  }
  Result<std::unique_ptr<Subscription>> subscribe(std::vector<std::string> queues,
                                                  const SubscribeOptions& options,
                                                  Deadline by) override {
    return real_->subscribe(std::move(queues), options, by);
  }
  Result<std::unique_ptr<Publisher>> publisher() override {
    auto real = real_->publisher();
    if (!real) return real.error();
    return std::unique_ptr<Publisher>(
        std::make_unique<Silent>(std::move(*real), key_, silent_, kept_));
  }
  [[nodiscard]] std::string describe() const override { return real_->describe(); }

 private:
  class Silent final : public Publisher {
   public:
    Silent(std::unique_ptr<Publisher> real, std::string key,
           std::shared_ptr<std::atomic<bool>> silent,
           std::shared_ptr<std::atomic<std::size_t>> kept)
        : real_(std::move(real)),
          key_(std::move(key)),
          silent_(std::move(silent)),
          count_(std::move(kept)) {}

    Result<std::uint64_t> publish(std::span<const Message> messages, Deadline by) override {
      auto first = real_->publish(messages, by);
      for (std::size_t i = 0; first && i < messages.size(); ++i) {
        if (messages[i].routing_key == key_) tags_.insert(*first + i);
      }
      return first;
    }
    Result<std::vector<Confirm>> confirms(Deadline by) override {
      if (!*silent_ && !kept_.empty()) return std::exchange(kept_, {});
      auto confirms = real_->confirms(by);
      if (!confirms || !*silent_) return confirms;
      std::vector<Confirm> others;
      for (Confirm& one : *confirms) (tags_.contains(one.tag) ? kept_ : others).push_back(one);
      *count_ = kept_.size();
      return others;
    }
    [[nodiscard]] PublisherState state() const override { return real_->state(); }

   private:
    const std::unique_ptr<Publisher> real_;
    const std::string key_;
    const std::shared_ptr<std::atomic<bool>> silent_;
    const std::shared_ptr<std::atomic<std::size_t>> count_;
    std::set<std::uint64_t> tags_;
    std::vector<Confirm> kept_;
  };

  const std::shared_ptr<Broker> real_;
  const std::string key_;
  const std::shared_ptr<std::atomic<bool>> silent_ = std::make_shared<std::atomic<bool>>(true);
  const std::shared_ptr<std::atomic<std::size_t>> kept_ =
      std::make_shared<std::atomic<std::size_t>>(0);
};

TEST_F(SqliteRelay, a_queue_that_confirms_nothing_delays_only_its_route_and_uses_no_attempt) {
  const auto broker = std::make_shared<SilentBroker>(broker_, "order.stuck");
  auto with = options();
  with.window_messages = 4;
  with.confirm_within = 50ms;
  Relay relay(locks_, url(), broker, with);
  relay.start().value();
  std::vector<std::string> stuck;
  for (int i = 0; i < 10; ++i) stuck.push_back(add("s-" + std::to_string(i), "OrderStuck"));
  ASSERT_TRUE(poll_until([&] { return broker->kept() >= 4; })) << errors();
  for (int i = 0; i < 10; ++i) {
    const auto other = add("o-1");
    ASSERT_TRUE(becomes(other, "SENT")) << errors();
  }
  EXPECT_EQ(sql("SELECT count(*) FROM outbox_events WHERE status = 'SENT' AND type = 'OrderStuck'"),
            "0");
  // All are put aside, and no more goes there than went before it was known.
  EXPECT_TRUE(poll_until([&] {
    return sql("SELECT count(*) FROM outbox_events WHERE next_retry_at IS NOT NULL"
               " AND last_error LIKE '%does not answer'") == "10";
  }));
  EXPECT_LE(broker->kept(), 8U);
  EXPECT_EQ(relay.stats().unconfirmed, 0U);
  broker->answer();
  for (const auto& id : stuck) EXPECT_TRUE(becomes(id, "SENT"));
  EXPECT_EQ(sql("SELECT max(retry_count) FROM outbox_events"), "0");
  EXPECT_EQ(relay.stats().failed, 0U);
}

TEST_F(SqliteRelay, a_broker_that_is_away_costs_no_attempt) {
  const auto path = dir_ / "later" / "broker.db";
  const auto broker = Broker::open("embedded:" + path.string()).value();
  auto with = options();
  with.topology = shop_topology();
  Relay relay(locks_, url(), broker, with);
  relay.start().value();
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(add("o-" + std::to_string(i % 2)));
  ASSERT_TRUE(poll_until([&] { return !relay.stats().trouble.empty(); }));
  const auto began = errors();
  EXPECT_NE(began, "");
  // Longer than all attempts would take: 20 + 40 ms.
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(sql("SELECT max(retry_count) || ' ' || count(*) FROM outbox_events"
                " WHERE status = 'PENDING' AND next_retry_at IS NULL"),
            "0 10");
  std::filesystem::create_directory(dir_ / "later");
  const Spy spy(broker, "all");
  ASSERT_TRUE(spy.wait_for(10)) << errors();
  for (const auto& id : ids) EXPECT_TRUE(becomes(id, "SENT"));
  EXPECT_EQ(sql("SELECT max(retry_count) FROM outbox_events"), "0");
  EXPECT_TRUE(poll_until([&] { return relay.stats().trouble.empty(); }));
}

TEST_F(SqliteRelay, an_idle_relay_shows_that_its_broker_is_away_and_back) {
  std::filesystem::create_directory(dir_ / "mq");
  const auto path = dir_ / "mq" / "broker.db";
  const auto broker = Broker::open("embedded:" + path.string()).value();
  auto with = options();
  with.topology = shop_topology();
  Relay relay(locks_, url(), broker, with);
  relay.start().value();
  const auto connected = [&](bool wanted) {
    return poll_until([&] { return relay.stats().broker_connected == wanted; });
  };
  ASSERT_TRUE(connected(true)) << errors();
  EXPECT_EQ(relay.stats().trouble, "");
  std::filesystem::rename(dir_ / "mq", dir_ / "away");
  ASSERT_TRUE(connected(false));
  EXPECT_NE(relay.stats().trouble, "");
  std::filesystem::create_directory(dir_ / "mq");
  ASSERT_TRUE(connected(true)) << errors();
  EXPECT_TRUE(poll_until([&] { return relay.stats().trouble.empty(); })) << relay.stats().trouble;
  EXPECT_TRUE(becomes(add("o-1"), "SENT")) << "what was declared is declared again";
}

TEST_F(SqliteRelay, old_events_are_removed_and_others_stay) {
  for (const char* status : {"SENT", "DISCARDED", "PENDING"}) {
    sql(std::string("UPDATE outbox_events SET created_at = created_at - 4 * 86400000,") +
        " next_retry_at = 9223372036854775807, status = '" + status + "' WHERE event_id = '" +
        add("o-1", "LostOrder") + "'");
  }
  const auto young = add("o-2");
  auto with = options();
  with.clean_every = 50ms;
  std::atomic<std::int64_t> removed = 0;
  with.on_event = [&](const RelayEvent& event) {
    if (event.kind == RelayEvent::Kind::cleaned) removed += event.count;
  };
  {
    auto keeping = with;
    keeping.keep = Millis(0);
    Relay relay(locks_, url(), broker_, keeping);
    relay.start().value();
    ASSERT_TRUE(becomes(young, "SENT"));
    EXPECT_EQ(sql("SELECT count(*) FROM outbox_events"), "4");
  }
  EXPECT_EQ(removed, 0);
  Relay relay(locks_, url(), broker_, with);
  relay.start().value();
  EXPECT_TRUE(poll_until([&] { return removed == 2; })) << errors();
  EXPECT_EQ(sql("SELECT count(*) FROM outbox_events"), "2");
  EXPECT_EQ(errors(), "");
}

TEST_F(SqliteRelay, relays_in_different_modes_tell_of_each_other) {
  auto with = options();
  with.name = "shop";
  const std::shared_ptr<LockStore> store = make_memory_store();
  const auto locks = LockClient::make(store, {.owner = "one"}).value();
  Relay relay(locks, url(), broker_, with);
  relay.start().value();
  ASSERT_TRUE(poll_until([&] { return relay.stats().lanes_owned == 1; })) << errors();
  auto leads = options();
  leads.name = "shop";
  leads.mode = RelayMode::leader;
  const auto other = LockClient::make(store, {.owner = "two"}).value();
  Relay leader(other, url(), broker_, leads);
  leader.start().value();
  ASSERT_TRUE(poll_until([&] {
    return leader.stats().trouble.find("the relay one has the mode partitioned") !=
           std::string::npos;
  })) << errors();
  EXPECT_NE(errors().find("start all relays of relay/shop in the same mode"), std::string::npos);
  EXPECT_TRUE(becomes(add("o-1"), "SENT")) << "nothing is lost";
}

TEST_F(SqliteRelay, a_database_without_tables_is_told_and_waited_for) {
  const auto file = dir_ / "other.db";
  sqlite3* other = nullptr;
  sqlite3_open(file.c_str(), &other);
  sqlite3_busy_timeout(other, 30'000);
  sqlite3_exec(other, "CREATE TABLE t (a)", nullptr, nullptr, nullptr);
  Relay relay(locks_, "sqlite:" + file.string(), broker_, options());
  relay.start().value();
  EXPECT_TRUE(
      poll_until([&] { return errors().find("baton outbox install") != std::string::npos; }));
  install_outbox(other).value();
  EXPECT_TRUE(poll_until([&] { return relay.stats().lanes_owned == 1; })) << errors();
  relay.stop();
  sqlite3_close(other);
}

TEST_F(SqliteRelay, after_the_file_was_replaced_the_events_of_the_new_one_are_published) {
  Relay relay(locks_, url(), broker_, options());
  relay.start().value();
  const Spy spy(broker_, "all");
  const std::string first = add("o-1");
  ASSERT_TRUE(becomes(first, "SENT")) << errors();
  sqlite3* const old = database_;
  for (const char* of : {"", "-wal", "-shm"}) {
    std::filesystem::remove((dir_ / "shop.db").string() + of);
  }
  ASSERT_TRUE(poll_until([&] { return errors().find("there is no file") != std::string::npos; }))
      << errors();
  EXPECT_NE(errors().find("was deleted or replaced while in use"), std::string::npos);
  // An event of a program that has not noticed yet: it may wait there, but is not published from
  // a file that nobody else can find.
  const std::string lost = add("o-1");
  sqlite3_open((dir_ / "new.db").c_str(), &database_);
  sql("PRAGMA journal_mode = WAL");
  EXPECT_NO_THROW(sql("CREATE TABLE t (a)"));
  sqlite3_close(database_);
  std::filesystem::rename(dir_ / "new.db", dir_ / "shop.db");
  sqlite3_open((dir_ / "shop.db").c_str(), &database_);
  sqlite3_busy_timeout(database_, 30'000);
  ASSERT_TRUE(
      poll_until([&] { return errors().find("baton outbox install") != std::string::npos; }));
  install_outbox(database_).value();
  const std::string second = add("o-1");
  EXPECT_TRUE(becomes(second, "SENT")) << errors();
  ASSERT_TRUE(spy.wait_for(2));
  relay.stop();
  EXPECT_TRUE(spy.has(second));
  EXPECT_FALSE(spy.has(lost));
  sqlite3_close(std::exchange(database_, old));
  EXPECT_EQ(status(lost), "PENDING");
}

TEST_F(SqliteRelay, an_owner_that_was_overtaken_marks_nothing) {
  auto with = options();
  with.name = "shop";
  Relay relay(locks_, url(), broker_, with);
  relay.start().value();
  ASSERT_TRUE(poll_until([&] { return relay.stats().lanes_owned == 1; })) << errors();
  // A newer owner, which this one does not know of.
  sql("UPDATE outbox_lane SET token = token + 1000000");
  const auto id = add("o-1");
  ASSERT_TRUE(poll_until([&] { return relay.stats().lanes_owned == 0; }));
  EXPECT_EQ(status(id), "PENDING");
  EXPECT_TRUE(poll_until([&] { return errors().find("newer token") != std::string::npos; }));
  EXPECT_NE(errors().find("(--store) and the same --name?"), std::string::npos) << errors();
  sql("UPDATE outbox_lane SET token = 0");
  EXPECT_TRUE(becomes(id, "SENT"));
  EXPECT_EQ(relay.stats().set, "relay/shop");
}

TEST_F(SqliteRelay, leader_mode_publishes_too) {
  auto with = options();
  with.mode = RelayMode::leader;
  Relay relay(locks_, url(), broker_, with);
  relay.start().value();
  EXPECT_TRUE(becomes(add("o-1"), "SENT")) << errors();
}

TEST_F(SqliteRelay, large_bodies_are_published_though_few_fit_into_memory) {
  const std::string large = '"' + std::string(kMaxEventPayload - 2, 'x') + '"';
  sql("BEGIN IMMEDIATE");
  for (int i = 0; i < 24; ++i) {
    outbox_
        .add(database_,
             {.type = "OrderPlaced", .aggregate = "o-" + std::to_string(i), .payload = large})
        .value();
  }
  sql("COMMIT");
  Relay relay(locks_, url(), broker_, options());
  relay.start().value();
  const Spy spy(broker_, "all");
  ASSERT_TRUE(spy.wait_for(24)) << errors();
  for (const Message& message : spy.messages()) EXPECT_EQ(message.body.size(), large.size());
}

TEST_F(SqliteRelay, what_cannot_work_is_refused) {
  const auto refused = [&](const std::string& at, RelayOptions with, Code code) {
    Relay relay(locks_, at, broker_, std::move(with));
    const auto run = relay.run();
    ASSERT_FALSE(run);
    EXPECT_EQ(run.error().code, code) << run.error().message;
    EXPECT_FALSE(relay.start());
  };
  refused("mysql://u:secret@h/d", {}, Code::bad_url);
  refused(url(), {.name = std::string(5'000, 'x')}, Code::bad_name);
  refused(url(), {.max_attempts = 0}, Code::bad_request);
  refused(url(), {.topology = Topology{.queues = {{.name = ""}}}}, Code::bad_request);
  Relay no_broker(locks_, url(), nullptr, {});
  EXPECT_FALSE(no_broker.run());
}

// Pure.
TEST(RelayTakeOver, goes_on_from_a_checkpoint_of_this_cluster_that_is_not_ahead_of_it) {
  const relay::Snapshot seen{.xmin = 90, .xmax = 100, .xip = {90}};
  for (const relay::Xid xmax : {100U, 101U, 5'000U}) {
    const auto plan = relay::take_over(seen, "7", "7", xmax);
    EXPECT_EQ(plan.from, seen) << xmax;
    EXPECT_FALSE(plan.restamp) << xmax;
  }
  const auto begins_anew = [](const relay::TakeOver& plan) {
    return plan.restamp && plan.from == relay::Snapshot();
  };
  EXPECT_TRUE(begins_anew(relay::take_over(seen, "7", "7", 99)));
  EXPECT_TRUE(begins_anew(relay::take_over(seen, "7", "7", 3)));
  EXPECT_TRUE(begins_anew(relay::take_over(seen, "7", "8", 5'000)));
  EXPECT_TRUE(begins_anew(relay::take_over(seen, "", "8", 5'000)));
}

// Pure. A queue that was away for an hour has left many.
TEST(RelayRetries, of_a_route_in_trouble_are_asked_for_one_at_a_time_and_use_no_memory) {
  relay::Look look({}, {}, {});
  const auto now = BootClock::now();
  std::vector<relay::Head> heads;
  for (int i = 1; i <= 2'000; ++i) {
    heads.push_back(
        {.row = {.position = i, .aggregate = std::to_string(i), .route = "silent"}, .due = true});
  }
  heads.push_back({.row = {.position = 9'999, .aggregate = "a", .route = "sound"}, .due = true});
  relay::Window window;
  const auto sent = [&](Instant at) {
    look.add_heads(heads, at);
    std::vector<relay::Position> positions;
    for (const relay::Row& row : look.publish(window, at)) positions.push_back(row.position);
    return positions;
  };
  look.shut("silent", now + 1min);
  EXPECT_EQ(sent(now), std::vector<relay::Position>{9'999});
  EXPECT_EQ(look.undecided(), 1U);
  EXPECT_TRUE(look.next_read()) << "there is room for new ones";
  EXPECT_EQ(sent(now + 1min), std::vector<relay::Position>{1});
  EXPECT_EQ(sent(now + 2min), std::vector<relay::Position>{});
  look.confirm(1, PublishOutcome::taken, "", now + 2min);
  EXPECT_EQ(sent(now + 2min).size(), 998U) << "as many as fit into the window";
}

// Pure. Without it, each event of a long queue of one aggregate would cost a read of the index.
TEST(RelayRetries, events_behind_a_held_one_go_one_after_the_other_up_to_one_that_has_failed) {
  relay::Look look({}, {"a", "b"}, {});
  const auto now = BootClock::now();
  const auto row = [](relay::Position position, const char* aggregate) {
    return relay::Row{.position = position, .aggregate = aggregate, .route = "events"};
  };
  const std::vector<relay::Head> heads{{.row = row(1, "a"), .due = true, .held = true},
                                       {.row = row(2, "b"), .due = true}};
  look.add_heads(heads, now);
  EXPECT_EQ(look.flowing(heads), std::vector<std::string>{"a"}) << "b has a time of its own";
  look.add_followers({{.row = row(3, "a"), .held = true},
                      {.row = row(4, "b"), .held = true},
                      {.row = row(5, "a"), .held = true},
                      {.row = row(6, "a"), .held = false},
                      {.row = row(7, "a"), .held = true}});
  EXPECT_EQ(look.flowing(heads), std::vector<std::string>{}) << "they are in memory";
  relay::Window window;
  std::vector<relay::Position> sent;
  for (int i = 0; i < 10; ++i) {
    for (const relay::Row& one : look.publish(window, now)) {
      sent.push_back(one.position);
      look.confirm(one.position, PublishOutcome::taken, "", now);
    }
  }
  EXPECT_EQ(sent, (std::vector<relay::Position>{1, 2, 3, 4, 5}));
  EXPECT_EQ(look.undecided(), 0U);
}

// Pure: of the class that decides, with the options that a relay has by default.
TEST(RelayRetries, of_a_returned_event_come_after_10_20_40_80_s_and_ten_attempts_are_all) {
  const relay::LookOptions options{.max_attempts = RelayOptions{}.max_attempts,
                                   .first_delay = RelayOptions{}.first_delay};
  relay::Look look({}, {"a"}, options);
  const auto now = BootClock::now();
  for (int attempt = 1; attempt <= 10; ++attempt) {
    look.add_heads(
        {{.row = {.position = 7, .aggregate = "a", .attempts = attempt - 1}, .due = true}}, now);
    relay::Window window;
    ASSERT_EQ(look.publish(window, now).size(), 1U) << attempt;
    look.confirm(7, PublishOutcome::returned, "no queue wants it", now);
    const relay::Batch batch = look.batch(10);
    ASSERT_EQ(batch.marks.size(), 1U);
    const relay::Mark& mark = batch.marks.front();
    EXPECT_EQ(mark.attempts, attempt);
    if (attempt == 10) {
      EXPECT_EQ(mark.kind, relay::Mark::Kind::failed);
    } else {
      EXPECT_EQ(mark.kind, relay::Mark::Kind::retry);
      const double seconds = 10.0 * (1 << (attempt - 1));
      EXPECT_NEAR(static_cast<double>(mark.delay.count()) / 1'000, seconds, seconds / 5);
    }
    look.written(batch);
  }
}

}  // namespace
}  // namespace baton::test
