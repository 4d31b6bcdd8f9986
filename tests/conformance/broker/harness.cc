#include "harness.h"

#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace baton::test {

BrokerFactory& broker_factory() {
  static const std::unique_ptr<BrokerFactory> made = make_broker_factory();
  return *made;
}

BrokerTest::BrokerTest() : broker_(open()) {
  static int tests = 0;
  prefix_ = "t" + std::to_string(::getpid()) + "." + std::to_string(++tests) + ".";
}

std::shared_ptr<Broker> BrokerTest::open() { return Broker::open(broker_factory().url()).value(); }

Topology BrokerTest::simple(const std::vector<std::string>& queues) const {
  Topology topology;
  topology.exchanges.push_back({.name = name("events")});
  for (const auto& queue : queues) {
    topology.queues.push_back({.name = name(queue)});
    topology.bindings.push_back({.exchange = name("events"), .pattern = "#", .queue = name(queue)});
  }
  return topology;
}

void BrokerTest::declare(const Topology& topology) const {
  broker_->declare(topology, soon()).value();
}

Message BrokerTest::message(const std::string& key, const std::string& body) const {
  return {.exchange = name("events"), .routing_key = key, .id = "id-" + body, .body = body};
}

std::vector<Confirm> publish(Publisher& publisher, const std::vector<Message>& messages) {
  const std::uint64_t first = publisher.publish(messages, soon()).value();
  std::vector<Confirm> ordered(messages.size());
  std::set<std::uint64_t> seen;
  const Deadline by = soon();
  while (seen.size() < messages.size()) {
    auto confirms = publisher.confirms(by).value();
    for (const Confirm& confirm : confirms) {
      const std::uint64_t at = confirm.tag - first;
      if (at >= ordered.size() || !seen.insert(confirm.tag).second) {
        throw std::runtime_error("a confirm with the wrong tag");
      }
      ordered[at] = confirm;
    }
    if (BootClock::now() >= by) throw std::runtime_error("confirms are missing");
  }
  return ordered;
}

Confirm publish(Publisher& publisher, const Message& message) {
  return publish(publisher, std::vector<Message>{message}).front();
}

void publish_all(Publisher& publisher, const std::vector<Message>& messages) {
  for (const Confirm& confirm : publish(publisher, messages)) {
    if (confirm.outcome != PublishOutcome::taken)
      throw std::runtime_error("not taken: " + confirm.why);
  }
}

std::vector<Delivery> take(Subscription& from, std::size_t count) {
  std::vector<Delivery> all;
  const Deadline by = soon();
  while (all.size() < count && BootClock::now() < by) {
    auto deliveries = from.take(count - all.size(), by).value();
    for (Delivery& delivery : deliveries) {
      all.push_back(std::move(delivery));
    }
  }
  return all;
}

void ack(Subscription& to, const std::vector<Delivery>& deliveries) {
  std::vector<Settlement> settlements;
  for (const Delivery& delivery : deliveries) settlements.push_back({delivery.tag, Settle::ack});
  to.settle(settlements, soon()).value();
}

void settle(Subscription& to, const Delivery& delivery, Settle how) {
  const Settlement settlement{delivery.tag, how};
  to.settle({&settlement, 1}, soon()).value();
}

std::vector<std::string> drain(Broker& broker, const std::string& queue, std::size_t count) {
  auto subscription = broker.subscribe(queue, {}, soon()).value();
  std::vector<std::string> all;
  std::set<std::string> different;
  const Deadline by = soon();
  while (different.size() < count && BootClock::now() < by) {
    const auto deliveries = subscription->take(64, by).value();
    for (const Delivery& delivery : deliveries) {
      all.push_back(delivery.message.body);
      different.insert(delivery.message.body);
    }
    ack(*subscription, deliveries);
  }
  std::sort(all.begin(), all.end());
  return all;
}

bool is_empty(Broker& broker, const std::string& queue) {
  auto subscription = broker.subscribe(queue, {}, soon()).value();
  return subscription->take(1, in(Millis(300))).value().empty();
}

std::vector<std::string> bodies(const std::vector<Delivery>& deliveries) {
  std::vector<std::string> all;
  for (const Delivery& delivery : deliveries) all.push_back(delivery.message.body);
  return all;
}

ProcessOptions client_process(const std::vector<std::string>& arguments, const std::string& url) {
  ProcessOptions options{.argv = {BATON_BROKER_CLIENT, url}};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  return options;
}

}  // namespace baton::test
