#include "eventlog/frontier.h"

#include <utility>

namespace baton::eventlog {

Position Frontier::look(const Look& look) {
  const Position drawn = look.last_value - (look.is_called ? 0 : 1);
  std::map<std::string, Position> bounds;
  Position lowest = drawn;
  stalled_by_.reset();
  for (const Holder& holder : look.holders) {
    const auto known = bounds_.find(holder.transaction);
    Position bound = known != bounds_.end() ? known->second : last_drawn_;
    if (known == bounds_.end() && holder.prepared) bound = position_;
    bounds.emplace(holder.transaction, bound);
    if (bound < lowest) {
      lowest = bound;
      stalled_by_ = holder;
    }
  }
  bounds_ = std::move(bounds);
  last_drawn_ = drawn;
  position_ = lowest;
  return position_;
}

std::string Frontier::describe() const {
  std::string text = "frontier " + std::to_string(position_) + " of " + std::to_string(last_drawn_);
  for (const auto& [transaction, bound] : bounds_) {
    text += " " + transaction + ">" + std::to_string(bound);
  }
  return text;
}

}  // namespace baton::eventlog
