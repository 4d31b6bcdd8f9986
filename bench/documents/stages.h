#pragma once

#include <string>
#include <vector>

#include "documents/platform.h"

namespace baton::bench {

// A stage that every document goes through: a service, and how far it has come.
struct Stage {
  std::string name;
  std::string service;
  std::string progress;   // SQL: events or rows that are finished
  std::int64_t each = 1;  // of them a document
  [[nodiscard]] std::int64_t documents(Platform& platform) const {
    return platform.number(service, progress) / each;
  }
};

// In the order in which each can begin when all before it have ended. A stage that publishes has
// ended when its events are in the broker.
[[nodiscard]] const std::vector<Stage>& stages();

}  // namespace baton::bench
