#pragma once

// A system of events: writers, relays and consumers as processes (event_replica), which tests kill
// and stop, and a spy in this one.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "baton/broker.h"
#include "event_history.h"
#include "event_tables.h"
#include "sql/connection.h"
#include "support/process.h"
#include "support/temp_dir.h"

namespace baton::test {

// URLs.
struct EventPlace {
  std::string shop;  // the database with the outbox
  std::string sink;  // that of the consumers
  std::string locks;
  std::string broker;
};

// All of it in files below a directory.
EventPlace event_files(const TempDir& dir);

class Replica {
 public:
  explicit Replica(std::vector<std::string> command);
  void kill();
  void start();
  void restart();  // as after a crash
  void pause();    // until all its threads stand still
  void go_on();
  void say(const std::string& line) { process_->write(line + "\n"); }
  [[nodiscard]] bool wait_for(std::string_view text) { return process_->wait_for_out(text); }
  // It ends by itself. Empty, or why it did not.
  [[nodiscard]] std::string finish();
  // Waits for its end, and returns the signal.
  [[nodiscard]] int died_of();
  // Of all its lives.
  [[nodiscard]] std::string said() const { return said_ + process_->out(); }
  [[nodiscard]] std::string err() const { return process_->err(); }

 private:
  std::vector<std::string> command_;
  std::unique_ptr<Process> process_;
  std::string said_;
};

// Problems of the system itself are exceptions.
class EventSystem {
 public:
  // Makes the tables, and replaces those of an earlier system in the same databases.
  EventSystem(EventPlace place, int aggregates, std::string program);
  ~EventSystem();

  void declare(const Topology& topology);
  void watch();  // lets the spy begin
  // `more` are further words for it; event_replica.cc has them.
  Replica& add_relay(std::vector<std::string> more = {});
  Replica& add_consumer(std::vector<std::string> more = {});
  Replica& add_writer(int seed);
  // Three relays and three consumers, two writers, and the spy.
  void add_all(int seed, Millis ttl);

  // Divided among the writers.
  void write(int events);
  // In a transaction of its own, by this process; the aggregate is one of a1, a2, ….
  void write_one(const std::string& aggregate, const std::string& type);

  // On files: stands still where it keeps nobody from writing.
  void pause_between_writes(Replica& replica);

  std::size_t effects();
  bool reach(std::size_t effects, std::chrono::nanoseconds limit);
  // Nothing has to be published, handled or tried again.
  bool settled();
  EventVerdict judge(const EventLimits& limits = {});
  // The writers end. Waits until nothing is wrong, or for `limit`, and ends the others.
  EventVerdict finish(std::chrono::nanoseconds limit);

  [[nodiscard]] sql::Connection& shop() { return *shop_; }
  [[nodiscard]] sql::Connection& sink() { return *sink_; }
  [[nodiscard]] Replica& relay(std::size_t i) { return *relays_.at(i); }
  [[nodiscard]] Replica& consumer(std::size_t i) { return *consumers_.at(i); }
  [[nodiscard]] Replica& writer(std::size_t i) { return *writers_.at(i); }

 private:
  using Replicas = std::vector<std::unique_ptr<Replica>>;
  Replica& add(Replicas& replicas, const std::string& role, std::vector<std::string> words,
               const std::vector<std::string>& more);
  void reopen();  // what a crash of the server has closed

  const EventPlace place_;
  const int aggregates_;
  const std::string program_;
  std::unique_ptr<sql::Connection> shop_;
  std::unique_ptr<sql::Connection> sink_;
  std::shared_ptr<Broker> broker_;
  Spy spy_;
  Replicas relays_;
  Replicas consumers_;
  Replicas writers_;
  std::jthread spying_;
};

}  // namespace baton::test
