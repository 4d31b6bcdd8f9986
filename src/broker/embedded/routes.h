#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "baton/broker.h"

namespace baton::broker {

// Which queues get a message. Pure. Not thread-safe: it remembers answers.
class Routes {
 public:
  Routes() = default;
  explicit Routes(const Topology& topology);

  [[nodiscard]] bool has_exchange(const std::string& name) const {
    return exchanges_.contains(name);
  }

  // Places in Topology::queues, each once. Empty: no queue wants it, or there is no such exchange.
  // Valid until the next call.
  [[nodiscard]] const std::vector<std::size_t>& route(const Message& message);

 private:
  struct Target {
    std::string pattern;       // of a topic exchange
    std::string header_name;   // of a headers exchange
    std::string header_value;  // the same
    std::size_t queue = 0;
    std::string to_exchange;  // empty: the queue
  };
  struct Exchange {
    Topology::Type type = Topology::Type::topic;
    std::string alternate;
    std::vector<Target> targets;
  };

  [[nodiscard]] static bool matches(const Exchange& exchange, const Target& target,
                                    const Message& message);

  std::map<std::string, Exchange, std::less<>> exchanges_;
  // By exchange and routing key, where no headers exchange was met on the way.
  std::unordered_map<std::string, std::vector<std::size_t>> remembered_;
  std::vector<std::size_t> answer_;
};

}  // namespace baton::broker
