#pragma once

#include <array>
#include <atomic>
#include <string_view>

#include "store/common/contended.h"

namespace baton::store::postgres {

// What this process believes of names, by hash: which were not free lately, so that the shortest
// way would be a detour, and which have a row, so that an update will do. A wrong guess costs a
// round trip and nothing else. Thread-safe.
class Guesses {
  static std::size_t hash(std::string_view key) { return std::hash<std::string_view>()(key); }
  template <typename Slots>
  static auto& at(Slots& slots, std::string_view key) {
    return slots[hash(key) % slots.size()];
  }

 public:
  void contended(std::string_view key) { contended_.add(key); }
  [[nodiscard]] bool is_contended(std::string_view key) const { return contended_.has(key); }

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
  Contended contended_;
  std::array<std::atomic<std::size_t>, 8192> rows_{};
};

}  // namespace baton::store::postgres
