#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <string_view>

#include "baton/clock.h"

namespace baton::store::redis {

// Which names were not free lately: for those the shortest way is a detour. A guess by hash that
// forgets after a second. Thread-safe.
class Contended {
 public:
  void add(std::string_view key) { slot(key).store(now(), std::memory_order_relaxed); }
  [[nodiscard]] bool has(std::string_view key) {
    return now() - slot(key).load(std::memory_order_relaxed) < 1000;
  }

 private:
  static std::int64_t now() {
    return std::chrono::floor<Millis>(BootClock::now().time_since_epoch()).count();
  }
  std::atomic<std::int64_t>& slot(std::string_view key) {
    return seen_[std::hash<std::string_view>()(key) % seen_.size()];
  }
  std::array<std::atomic<std::int64_t>, 1024> seen_{};
};

}  // namespace baton::store::redis
