#pragma once

// What the tests of the warehouse share: real nodes on stores of the test's own. The environment
// variable BATON_WAREHOUSE_ON says what locks, data and source are: sqlite or postgres.

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <signal.h>

#include "baton/job_control.h"
#include "baton/locks.h"
#include "integration/postgres/postgres_database.h"
#include "sql/connection.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

inline const std::vector<std::string> kTypes{"inventory", "order", "wes"};

class WarehouseTest : public ::testing::Test {
 protected:
  using Words = std::vector<std::string>;

  void SetUp() override {
    const char* on = std::getenv("BATON_WAREHOUSE_ON");
    ASSERT_NE(on, nullptr) << "BATON_WAREHOUSE_ON is not set";
    postgres_ = std::string(on) == "postgres";
    if (postgres_) {
      locks_database_ = std::make_unique<Database>();
      locks_database_->migrate();
      data_database_ = std::make_unique<Database>();
      source_database_ = std::make_unique<Database>();
      effects_database_ = std::make_unique<Database>();
    }
    configure({});
  }

  [[nodiscard]] std::string file(const std::string& name) const {
    return "sqlite:" + (dir_ / name).string();
  }
  [[nodiscard]] std::string store() const {
    return postgres_ ? locks_database_->url() : file("locks.db");
  }
  [[nodiscard]] std::string data() const {
    return postgres_ ? data_database_->url() : file("data.db");
  }
  [[nodiscard]] std::string source() const {
    return postgres_ ? source_database_->url() : file("source.db");
  }
  [[nodiscard]] std::string effects() const {
    return postgres_ ? effects_database_->url() : file("effects.db");
  }
  [[nodiscard]] virtual std::string broker() const {
    return "embedded:" + (dir_ / "broker.db").string();
  }

  struct Settings {
    std::string delay = "100";
    std::string ttl = "60000";
    std::string scheduler;  // more lines of that section, indented by two
    std::string warehouse = "  batch: 25\n";
    std::string observers =
        "    order: [web, shop]\n    inventory: [north, south]\n    wes: [belt, shelf]\n";
  };
  void configure(const Settings& settings) {
    std::ofstream(dir_ / "warehouse.yaml")
        << "scheduler:\n  observer:\n    fixed-delay: " << settings.delay
        << "\n    lock:\n      ttl: " << settings.ttl << "\n"
        << settings.scheduler << "warehouse:\n  lateness: 4s\n"
        << settings.warehouse << "  observers:\n"
        << settings.observers;
  }

  [[nodiscard]] Words words(const std::string& command, const Words& more) const {
    Words all{BATON_WAREHOUSE, command, "--config", (dir_ / "warehouse.yaml").string(),
              "--source",      source()};
    if (command == "node" || command == "verify") all.insert(all.end(), {"--data", data()});
    if (command == "node") all.insert(all.end(), {"--broker", broker()});
    if (command == "verify") all.insert(all.end(), {"--effects", effects()});
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Process& start(const std::string& id, const Words& more = {}) {
    Words all = words("node", {"--store", store(), "--node", id, "--log", "text", "--log-level",
                               "debug", "--node-ttl", "2s"});
    all.insert(all.end(), more.begin(), more.end());
    nodes_[id] = std::make_unique<Process>(ProcessOptions{.argv = std::move(all)});
    EXPECT_TRUE(nodes_[id]->wait_for_out("observing")) << nodes_[id]->err();
    return *nodes_[id];
  }
  // A subscriber.
  Process& start_counter(const std::string& id) {
    nodes_[id] = std::make_unique<Process>(
        ProcessOptions{.argv = {BATON_WAREHOUSE, "count", "--broker", broker(), "--effects",
                                effects(), "--node", id, "--log", "text", "--log-level", "debug"}});
    EXPECT_TRUE(nodes_[id]->wait_for_out("counting the events")) << nodes_[id]->err();
    return *nodes_[id];
  }
  Process& node(const std::string& id) { return *nodes_.at(id); }

  void stop(const std::string& id) {
    node(id).kill(SIGTERM);
    const auto status = node(id).wait();
    ASSERT_TRUE(status) << id << " does not stop";
    EXPECT_TRUE(status->success()) << status->describe() << node(id).err();
  }

  [[nodiscard]] Finished command(const std::string& name, const Words& more) const {
    return run({.argv = words(name, more)}, 4 * patience);
  }
  void generate(const Words& more) const {
    const Finished done = command("generate", more);
    ASSERT_TRUE(done.status.success()) << done.err;
  }
  // Each row an event, each event an effect.
  void expect_exact(const Words& more = {"--wait", "60s"}) {
    if (!nodes_.contains("counter")) start_counter("counter");
    const Finished done = command("verify", more);
    EXPECT_TRUE(done.status.success()) << done.out << done.err;
  }

  // Of the data.
  sql::Rows query(const std::string& sql) const { return query(data(), sql); }
  static sql::Rows query(const std::string& url, const std::string& sql) {
    auto database = sql::Connection::open(url).value();
    return database->query(sql).value();
  }
  std::int64_t count(const std::string& sql) const { return query(sql).front().integer(0); }
  [[nodiscard]] std::int64_t events(const std::string& where = "true") const {
    return count("SELECT count(*) FROM outbox_events WHERE " + where);
  }
  [[nodiscard]] std::int64_t events_of_node(const std::string& id) const {
    return events("headers LIKE '%\"node\":\"" + id + "\"%'");
  }
  void make_tables() const { generate({"--rate", "1", "--seconds", "0.1"}); }
  void add_orders(int rows) const {
    auto database = sql::Connection::open(source()).value();
    for (int i = 0; i < rows; ++i) {
      database
          ->query("INSERT INTO orders (id, channel, changed_at) VALUES ($1, 'web', $2)",
                  {"by-hand-" + std::to_string(i), std::int64_t{1'000'000}})
          .value();
    }
  }

  [[nodiscard]] std::int64_t good_polls(const std::string& type,
                                        const std::string& more = "") const {
    return count("SELECT count(*) FROM warehouse_poll WHERE outcome = 'ok' AND type = '" + type +
                 "' " + more);
  }
  bool every_type_is_polled(std::int64_t times, const std::string& more = "") const {
    return poll_until(
        [&] {
          return std::all_of(kTypes.begin(), kTypes.end(), [&](const std::string& type) {
            return good_polls(type, more) >= times;
          });
        },
        2 * patience, std::chrono::milliseconds(50));
  }

  [[nodiscard]] LockClient locks() const { return open(store(), {.owner = "test"}).value(); }

  TempDir dir_{"warehouse"};
  bool postgres_ = false;
  std::unique_ptr<Database> locks_database_;
  std::unique_ptr<Database> data_database_;
  std::unique_ptr<Database> source_database_;
  std::unique_ptr<Database> effects_database_;
  std::map<std::string, std::unique_ptr<Process>> nodes_;
};

}  // namespace baton::test
