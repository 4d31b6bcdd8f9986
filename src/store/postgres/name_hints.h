#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "store/common/contended.h"

namespace baton::store::postgres {

// What this process remembers of names, by hash: which ones a fast path could not decide lately,
// which ones somebody else held lately, and which ones have a row and were its own when it last saw
// them, so that an UPDATE will do. A wrong hint costs a round trip and nothing else. Thread-safe.
class NameHints {
 public:
  explicit NameHints(Millis contended_for = kContendedFor)
      : contended_(contended_for), busy_(contended_for) {}

  void contended(std::string_view key) { contended_.add(key); }
  [[nodiscard]] bool is_contended(std::string_view key) const { return contended_.has(key); }

  void found_busy(std::string_view key) {
    busy_.add(key);
    const std::uint64_t hash = hash_of(key);
    for (auto& entry : free_[hash % kBuckets]) {
      std::uint32_t mark = mark_of(hash);
      entry.compare_exchange_strong(mark, 0, std::memory_order_relaxed);
    }
  }
  [[nodiscard]] bool was_busy(std::string_view key) const { return busy_.has(key); }

  // Granted to this process, or released by it. The newest entry moves the others of its bucket
  // back by one, and the oldest out. Of two threads that change a bucket at once, one may overwrite
  // the other.
  void found_free(std::string_view key) {
    const std::uint64_t hash = hash_of(key);
    Bucket& bucket = free_[hash % kBuckets];
    std::uint32_t mark = mark_of(hash);
    if (has(bucket, mark)) return;
    for (auto& entry : bucket) mark = entry.exchange(mark, std::memory_order_relaxed);
  }
  [[nodiscard]] bool may_be_free(std::string_view key) const {
    const std::uint64_t hash = hash_of(key);
    return has(free_[hash % kBuckets], mark_of(hash));
  }

  static constexpr std::size_t kBuckets = 8192;
  static constexpr std::size_t kEntries = 4;

 private:
  using Bucket = std::array<std::atomic<std::uint32_t>, kEntries>;

  static std::uint64_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }
  // Tells a name from the others of its bucket; 0 is an empty entry.
  static std::uint32_t mark_of(std::uint64_t hash) {
    return static_cast<std::uint32_t>(hash >> 32) | 1U;
  }
  static bool has(const Bucket& bucket, std::uint32_t mark) {
    return std::any_of(bucket.begin(), bucket.end(), [mark](const auto& entry) {
      return entry.load(std::memory_order_relaxed) == mark;
    });
  }

  Contended contended_;
  Contended busy_;
  std::array<Bucket, kBuckets> free_{};
};

}  // namespace baton::store::postgres
