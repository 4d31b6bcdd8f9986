#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "apps/warehouse/config.h"
#include "baton/locks.h"
#include "baton/metrics.h"
#include "observe/log.h"

namespace baton::warehouse {

struct NodeSettings {
  std::string store;
  std::string data;
  std::string broker;
  std::string node;         // empty: host:pid
  Millis node_ttl{10'000};  // also of the lanes of the outbox that this node relays
  Millis poll_takes{0};     // each page is written so long after it was read; to see it slow
  Millis grace{10'000};
  std::string metrics;  // IP:PORT, or empty
  observe::LogFormat log_format = observe::LogFormat::json;
  observe::LogLevel log_level = observe::LogLevel::info;
};

// One replica: a scheduler with a job for each type of observer, and a relay that publishes what
// they add to the outbox.
class ObserverNode {
 public:
  static Result<std::unique_ptr<ObserverNode>> start(const Config& config,
                                                     const NodeSettings& settings);
  ~ObserverNode();
  ObserverNode(const ObserverNode&) = delete;
  ObserverNode& operator=(const ObserverNode&) = delete;

 private:
  class Impl;
  explicit ObserverNode(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace baton::warehouse
