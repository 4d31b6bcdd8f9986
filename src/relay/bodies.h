#pragma once

#include <optional>
#include <utility>

#include "relay/lane_tables.h"

namespace baton::relay {

// The messages of a lane that are in memory, and how many bytes their bodies have.
class Bodies {
 public:
  void add(Position position, Outgoing outgoing) {
    const std::size_t size = outgoing.message.body.size();
    if (messages_.emplace(position, std::move(outgoing)).second) bytes_ += size;
  }
  void add(Outgoings all) {
    while (!all.empty()) {
      const auto added = messages_.insert(all.extract(all.begin()));
      if (added.inserted) bytes_ += added.position->second.message.body.size();
    }
  }
  [[nodiscard]] std::optional<Outgoing> take(Position position) {
    auto found = messages_.extract(position);
    if (found.empty()) return {};
    bytes_ -= found.mapped().message.body.size();
    return std::move(found.mapped());
  }
  void clear() {
    messages_.clear();
    bytes_ = 0;
  }
  [[nodiscard]] bool contains(Position position) const { return messages_.contains(position); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  Outgoings messages_;
  std::size_t bytes_ = 0;
};

}  // namespace baton::relay
