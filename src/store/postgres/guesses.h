#pragma once

#include <array>
#include <atomic>
#include <string_view>

#include "baton/clock.h"

namespace baton::store::postgres {

// What this process believes of names, by hash: which were not free lately, so that the shortest
// way would be a detour, and which have a row, so that an update will do. A wrong guess costs a
// round trip and nothing else. Thread-safe.
class Guesses {
  static std::int64_t now() {
    return std::chrono::floor<Millis>(BootClock::now().time_since_epoch()).count();
  }
  static std::size_t hash(std::string_view key) { return std::hash<std::string_view>()(key); }
  template <typename Slots>
  static auto& at(Slots& slots, std::string_view key) {
    return slots[hash(key) % slots.size()];
  }

 public:
  void contended(std::string_view key) {
    at(contended_, key).store(now(), std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_contended(std::string_view key) const {
    return now() - at(contended_, key).load(std::memory_order_relaxed) < 1000;
  }

  void has_row(std::string_view key) {
    auto& slot = at(rows_, key);
    if (const auto sum = hash(key); slot.load(std::memory_order_relaxed) != sum) {
      slot.store(sum, std::memory_order_relaxed);
    }
  }
  [[nodiscard]] bool may_have_row(std::string_view key) const {
    return at(rows_, key).load(std::memory_order_relaxed) == hash(key);
  }

 private:
  std::array<std::atomic<std::int64_t>, 1024> contended_{};
  std::array<std::atomic<std::size_t>, 8192> rows_{};
};

}  // namespace baton::store::postgres
