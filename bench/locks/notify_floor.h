#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "locks/session.h"

namespace baton::bench {

// The least that a hand-over between two sessions costs: one commits an update with a NOTIFY, the
// other is blocked in poll(2) and receives it.
class NotifyFloor {
 public:
  explicit NotifyFloor(const std::string& url);

  // Milliseconds from before the update is sent until the notification is there.
  [[nodiscard]] std::vector<double> measure(std::chrono::milliseconds time);

 private:
  Session writer_;
  Session listener_;
};

}  // namespace baton::bench
