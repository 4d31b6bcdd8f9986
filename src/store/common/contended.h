#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "baton/clock.h"

namespace baton::store {

inline constexpr Millis kContendedFor{1000};

// Names that were not free lately: for those the fast path would be a wasted round trip. Names are
// told apart by hash only, and forgotten soon. Thread-safe.
class Contended {
 public:
  explicit Contended(Millis memory) : memory_(memory) {}

  void add(std::string_view key) { seen_[slot(key)].store(now(), std::memory_order_relaxed); }
  [[nodiscard]] bool has(std::string_view key) const {
    const std::int64_t seen = seen_[slot(key)].load(std::memory_order_relaxed);
    return seen != 0 && now() - seen < memory_.count();
  }

 private:
  static constexpr std::size_t kSlots = 1024;

  static std::int64_t now() {
    return std::chrono::floor<Millis>(BootClock::now().time_since_epoch()).count();
  }
  static std::size_t slot(std::string_view key) {
    return std::hash<std::string_view>()(key) % kSlots;
  }

  const Millis memory_;
  std::array<std::atomic<std::int64_t>, kSlots> seen_{};
};

}  // namespace baton::store
