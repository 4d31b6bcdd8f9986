#pragma once

#include <optional>
#include <utility>

#include "relay/lane_tables.h"

namespace baton::relay {

// The events of a lane that are in memory, and how many bytes their bodies have.
class Bodies {
 public:
  void add(Events all) {
    while (!all.empty()) {
      const auto added = events_.insert(all.extract(all.begin()));
      if (added.inserted) bytes_ += added.position->second.bytes();
    }
  }
  [[nodiscard]] std::optional<StoredEvent> take(Position position) {
    auto found = events_.extract(position);
    if (found.empty()) return {};
    bytes_ -= found.mapped().bytes();
    return std::move(found.mapped());
  }
  void clear() {
    events_.clear();
    bytes_ = 0;
  }
  [[nodiscard]] bool contains(Position position) const { return events_.contains(position); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  Events events_;
  std::size_t bytes_ = 0;
};

}  // namespace baton::relay
