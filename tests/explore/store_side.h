#pragma once

// The store of a world is the production core: its table is filled from the world, answers one
// request, and is read back.

#include "core/apply.h"
#include "explore/world.h"

namespace baton::explore {

class StoreSide {
 public:
  explicit StoreSide(const Setting& setting);

  // Leaves the world as the core left its table, not normalised yet: a comparison with the
  // world before finds the old tokens and turns unchanged.
  Reply answer(World& world, const MessageCell& message);

  // What the last answer asked of the store.
  [[nodiscard]] const core::Effects& effects() const { return effects_; }

  // Nothing is left that the store would have to remember.
  [[nodiscard]] bool forgettable(const World& world);

 private:
  void load(const World& world);
  void save(World& world) const;
  [[nodiscard]] Request request_for(const MessageCell& message) const;

  const Setting& setting_;
  core::LockTable table_;
  core::Effects effects_;
};

}  // namespace baton::explore
