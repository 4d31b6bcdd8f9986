#pragma once

// The suite that every broker passes. A broker joins by giving a BrokerFactory.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "baton/broker.h"
#include "support/process.h"
#include "support/wait.h"

namespace baton::test {

class BrokerFactory {
 public:
  virtual ~BrokerFactory() = default;

  // The same for all tests of a program; they use names of their own.
  virtual std::string url() = 0;

  // Stops the broker, whatever it does, and starts it again with what it has on disk.
  virtual void restart() = 0;

  // While the object lives, the broker does not answer.
  virtual std::shared_ptr<void> block() = 0;

  // A URL with which a consumer that stands still loses its deliveries after a few seconds.
  virtual std::string impatient_url() = 0;

  // A URL with a password that the broker refuses; empty if it has no passwords.
  virtual std::string refused_url() = 0;
  static constexpr const char* kWrongPassword = "not-the-password";

  // While the object lives, the broker takes no messages but answers; null if it has no such state.
  virtual std::shared_ptr<void> alarm() = 0;
};

// Each broker's test program defines it.
std::unique_ptr<BrokerFactory> make_broker_factory();
BrokerFactory& broker_factory();

inline Deadline in(Millis time) { return BootClock::now() + time; }
inline Deadline soon() { return in(std::chrono::seconds(30)); }

// A broker with names that no other test uses.
class BrokerTest : public ::testing::Test {
 protected:
  BrokerTest();

  // "orders" as this test calls it.
  [[nodiscard]] std::string name(const std::string& short_name) const {
    return prefix_ + short_name;
  }

  [[nodiscard]] static std::shared_ptr<Broker> open();

  // One topic exchange `events` and these queues, bound by # unless the bindings say otherwise.
  [[nodiscard]] Topology simple(const std::vector<std::string>& queues) const;
  void declare(const Topology& topology) const;

  [[nodiscard]] Message message(const std::string& key, const std::string& body) const;

  std::shared_ptr<Broker> broker_;

 private:
  std::string prefix_;
};

// Publishes and gives the outcomes in order.
std::vector<Confirm> publish(Publisher& publisher, const std::vector<Message>& messages);
Confirm publish(Publisher& publisher, const Message& message);
// Throws unless all were taken.
void publish_all(Publisher& publisher, const std::vector<Message>& messages);

// Takes until there are `count`, or patience ends.
std::vector<Delivery> take(Subscription& from, std::size_t count);
void ack(Subscription& to, const std::vector<Delivery>& deliveries);
void settle(Subscription& to, const Delivery& delivery, Settle how);

// Takes and acknowledges until there are `count` different bodies; further deliveries count, too.
std::vector<std::string> drain(Broker& broker, const std::string& queue, std::size_t count);

// Nothing is left that a new subscription would get. Waits a short time, so it can only fail for a
// good reason.
bool is_empty(Broker& broker, const std::string& queue);

std::vector<std::string> bodies(const std::vector<Delivery>& deliveries);

// A process of its own; see broker_client.cc.
ProcessOptions client_process(const std::vector<std::string>& arguments,
                              const std::string& url = broker_factory().url());

}  // namespace baton::test
