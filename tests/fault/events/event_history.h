#pragma once

// What a run of events has left behind, and what is wrong with it. It reads the tables and the
// messages that a spy queue got, and knows nothing of how they came about.

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "baton/broker.h"
#include "sql/connection.h"

namespace baton::test {

// In which order the events of each aggregate were seen first on a queue that gets all of them.
class Spy {
 public:
  // Takes messages until `stop`; subscribes again when the broker was away.
  void watch(Broker& broker, const std::stop_token& stop);

  [[nodiscard]] std::map<std::string, std::vector<std::string>> first_seen() const;
  [[nodiscard]] std::size_t count() const;

 private:
  void saw(const Message& message);

  mutable std::mutex mutex_;
  std::set<std::string> ids_;
  std::map<std::string, std::vector<std::string>> order_;  // ids by aggregate
};

struct EventVerdict {
  std::size_t committed = 0;
  std::size_t effects = 0;
  std::vector<std::string> problems;  // the first few of each kind
};

struct EventLimits {
  // That an event may have used: outages use none, and a run of faults has nothing else.
  int attempts = 0;
};

// `shop` has the tables business and outbox_events; `sink` has effect and inbox_events.
[[nodiscard]] EventVerdict judge_events(sql::Connection& shop, sql::Connection& sink,
                                        const Spy& spy, const EventLimits& limits = {});

}  // namespace baton::test
