#pragma once

// A subscriber, as another service would have one: it counts the observed rows in a database of its
// own, each event once (baton/consumer.h). Several replicas share the work.

#include <stop_token>
#include <string>

#include "baton/result.h"
#include "observe/log.h"

namespace baton::warehouse {

struct CounterSettings {
  std::string broker;
  std::string effects;  // the database
  std::string node;     // which replica this is; empty: host:pid
  std::string metrics;  // IP:PORT, or empty
  observe::LogFormat log_format = observe::LogFormat::json;
  observe::LogLevel log_level = observe::LogLevel::info;
};

// Until `stop`. Makes the tables if they are not there.
[[nodiscard]] Result<void> count_events(const CounterSettings& settings,
                                        const std::stop_token& stop);

}  // namespace baton::warehouse
