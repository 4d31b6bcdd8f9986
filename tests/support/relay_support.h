#pragma once

// What tests of the relay share: an embedded broker, and a consumer that keeps what has come.

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "baton/broker.h"
#include "baton/locks.h"
#include "baton/relay.h"
#include "support/temp_dir.h"
#include "support/wait.h"

namespace baton::test {

inline Deadline soon() { return BootClock::now() + patience; }

// The topic exchange `shop`, which sends all to the queue `all` but the keys `lost.*`, which nobody
// wants, and `full.*`, which go to a queue with room for two.
inline Topology shop_topology() {
  return {.exchanges = {{.name = "shop"}},
          .queues = {{.name = "all"}, {.name = "full", .max_length = 2}},
          .bindings = {{.exchange = "shop", .pattern = "order.#", .queue = "all"},
                       {.exchange = "shop", .pattern = "full.#", .queue = "full"}}};
}

// Takes what comes into a queue, on a thread of its own.
class Spy {
 public:
  Spy(std::shared_ptr<Broker> broker, std::string queue)
      : thread_([this, broker = std::move(broker), queue = std::move(queue)](
                    const std::stop_token& stop) { run(*broker, queue, stop); }) {}

  // In the order in which they came first.
  [[nodiscard]] std::vector<Message> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return messages_.size();
  }
  [[nodiscard]] std::size_t deliveries() const {
    const std::lock_guard lock(mutex_);
    return deliveries_;
  }
  [[nodiscard]] bool wait_for(std::size_t count) const {
    return poll_until([&] { return this->count() >= count; });
  }
  [[nodiscard]] bool has(const std::string& id) const {
    const std::lock_guard lock(mutex_);
    return ids_.contains(id);
  }
  // The bodies of an aggregate, by the order of first arrival.
  [[nodiscard]] std::vector<std::string> bodies(const std::string& aggregate) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> bodies;
    for (const Message& message : messages_) {
      if (message.headers.at("aggregate") == aggregate) bodies.push_back(message.body);
    }
    return bodies;
  }

 private:
  void run(Broker& broker, const std::string& queue, const std::stop_token& stop) {
    std::unique_ptr<Subscription> from;
    while (!stop.stop_requested()) {
      if (!from) {
        auto subscribed = broker.subscribe(queue, {.prefetch = 500}, soon());
        if (!subscribed) {
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
          continue;
        }
        from = std::move(*subscribed);
      }
      auto taken = from->take(500, BootClock::now() + Millis(50));
      if (!taken) {
        from.reset();
        continue;
      }
      std::vector<Settlement> acks;
      for (Delivery& delivery : *taken) {
        acks.push_back({.tag = delivery.tag});
        const std::lock_guard lock(mutex_);
        ++deliveries_;
        if (ids_.insert(delivery.message.id).second) {
          messages_.push_back(std::move(delivery.message));
        }
      }
      if (!acks.empty() && !from->settle(acks, soon())) from.reset();
    }
  }

  mutable std::mutex mutex_;
  std::vector<Message> messages_;
  std::set<std::string> ids_;
  std::size_t deliveries_ = 0;
  std::jthread thread_;
};

}  // namespace baton::test
