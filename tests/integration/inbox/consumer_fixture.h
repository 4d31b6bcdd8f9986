#pragma once

// A service with its database, an embedded broker, and consumers in this process. The same tests
// run on SQLite and on PostgreSQL.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baton/broker.h"
#include "baton/consumer.h"
#include "baton/inbox.h"
#include "sql/transaction.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

// A database of a service, removed at the end of the scope.
class ServiceDatabase {
 public:
  virtual ~ServiceDatabase() = default;
  [[nodiscard]] virtual std::string url() const = 0;
  // The server refuses this database to everyone but superusers' own test sessions, and back.
  virtual void take_away() {}
  virtual void bring_back() {}
  [[nodiscard]] virtual bool can_go_away() const { return false; }
};

// Each program defines it.
std::unique_ptr<ServiceDatabase> make_service_database();

// What a consumer told.
class Notes {
 public:
  using Kind = ConsumerNote::Kind;
  void add(const ConsumerNote& note);
  // Waits until there have been so many.
  [[nodiscard]] bool wait(Kind kind, int count = 1);
  [[nodiscard]] int count(Kind kind);
  [[nodiscard]] std::string last_reason(Kind kind);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<Kind, std::string>> notes_;
};

// Writes a row of the table effects in the open transaction of a handler. Throws if it cannot.
void write_effect(const Handling& handling, const std::string& what = "effect");

class ConsumerTest : public ::testing::Test {
 protected:
  ConsumerTest();

  [[nodiscard]] ConsumerOptions options();
  // Starts it; it ends with the test.
  Consumer& consume(Consumer::Handler handler);
  Consumer& consume(ConsumerOptions options, Consumer::Handler handler);

  // A new event of an aggregate.
  [[nodiscard]] static Event event(const std::string& aggregate = "doc-1");
  [[nodiscard]] static Message message(const Event& event);
  void publish(const std::vector<Message>& messages) const;
  void publish(const std::vector<Event>& events) const;

  // The first column of the first row; empty without one.
  std::string ask(const std::string& sql) const;
  bool ask_until(const std::string& sql, const std::string& answer) const;
  void move_time(Millis by) { shift_ += by.count(); }

  TempDir dir_ = TempDir::in_memory("consumer");
  std::unique_ptr<ServiceDatabase> service_ = make_service_database();
  std::unique_ptr<sql::Connection> database_;
  std::shared_ptr<Broker> broker_;
  Notes notes_;
  std::atomic<std::int64_t> shift_{0};
  std::vector<std::unique_ptr<Consumer>> consumers_;
};

}  // namespace baton::test
