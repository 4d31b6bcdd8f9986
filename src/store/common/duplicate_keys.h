#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

namespace baton::store {

// Which of many things come up more than once. By hash: it may take two for one, never one for two.
template <typename Thing>
class DuplicateKeys {
 public:
  void reserve(std::size_t count) { hashes_.reserve(count); }
  void add(const Thing& thing) { hashes_.push_back(std::hash<Thing>()(thing)); }
  void count() { std::sort(hashes_.begin(), hashes_.end()); }  // once, after the last of them

  [[nodiscard]] bool more_than_once(const Thing& thing) const {
    const auto first = std::lower_bound(hashes_.begin(), hashes_.end(), std::hash<Thing>()(thing));
    return hashes_.end() - first > 1 && *first == *std::next(first);
  }

 private:
  std::vector<std::size_t> hashes_;
};

}  // namespace baton::store
