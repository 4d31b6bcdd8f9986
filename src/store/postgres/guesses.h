#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "store/common/contended.h"

namespace baton::store::postgres {

// What this process believes of names, by hash: which were not free lately, so that the shortest
// way would be a detour, and which have a row, so that an update will do. A wrong guess costs a
// round trip and nothing else. Thread-safe.
class Guesses {
 public:
  explicit Guesses(Millis contended_for = kContendedFor) : contended_(contended_for) {}

  void contended(std::string_view key) { contended_.add(key); }
  [[nodiscard]] bool is_contended(std::string_view key) const { return contended_.has(key); }

  // The newest pushes the others of its shelf on; what two threads do to one at once may be lost.
  void has_row(std::string_view key) {
    const std::uint64_t hash = hash_of(key);
    Shelf& shelf = rows_[hash % kShelves];
    std::uint32_t mark = mark_of(hash);
    if (has(shelf, mark)) return;
    for (auto& place : shelf) mark = place.exchange(mark, std::memory_order_relaxed);
  }
  [[nodiscard]] bool may_have_row(std::string_view key) const {
    const std::uint64_t hash = hash_of(key);
    return has(rows_[hash % kShelves], mark_of(hash));
  }

  // So many names have a place; one more on a shelf that is full costs the oldest of it.
  static constexpr std::size_t kShelves = 8192;
  static constexpr std::size_t kPlaces = 4;

 private:
  using Shelf = std::array<std::atomic<std::uint32_t>, kPlaces>;

  static std::uint64_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }
  // What tells a name from the others of its shelf; 0 is an empty place.
  static std::uint32_t mark_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32) | 1U;
  }
  static bool has(const Shelf& shelf, std::uint32_t mark) {
    return std::any_of(shelf.begin(), shelf.end(), [mark](const auto& place) {
      return place.load(std::memory_order_relaxed) == mark;
    });
  }

  Contended contended_;
  std::array<Shelf, kShelves> rows_{};
};

}  // namespace baton::store::postgres
