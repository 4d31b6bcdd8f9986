#pragma once

// When an idle relay looks and when it sleeps, so that no committed event waits for a timer. A pure
// class; tests/explore/wakeup_world.h runs it beside writers.
//
// outbox_add takes the advisory lock of the lane shared, until its transaction ends, and notifies
// only if it cannot: a NOTIFY in every transaction would serialise their commits. The relay tries
// the same lock exclusively, and holds it while it sleeps (a lock of the session).
//
//   look ──▶ found something ──▶ (work, then) look
//     │
//     └─ nothing ──▶ try the lock ── refused: a writer is at work ──▶ pause 2, 4 … 64 ms, look
//                        │
//                        └─ locked ──▶ look once more ──▶ sleep until notified, 1 s at most
//                                                           │
//                        look ◀── unlock ◀─────────────────-┘
//
// The second look is for a writer that committed between the first one and the lock. A writer that
// comes later finds the lock taken, so it notifies.

#include <cstdint>

#include "baton/clock.h"
#include "baton/export.h"

namespace baton::relay {

class BATON_EXPORT WakeUp {
 public:
  enum class Step : std::uint8_t { look, lock, pause, sleep, unlock };

  [[nodiscard]] Step next() const { return step_; }
  [[nodiscard]] Millis pause() const { return pause_; }

  void looked(bool found);  // after look
  void locked(bool got);    // after lock
  void paused() { step_ = Step::look; }
  void slept() { step_ = Step::unlock; }
  void unlocked();

  [[nodiscard]] bool holds_lock() const { return holds_lock_; }

 private:
  Step step_ = Step::look;
  bool holds_lock_ = false;
  Millis pause_{1};
};

inline constexpr Millis kMaxSleep{1'000};
inline constexpr Millis kMaxPause{64};

}  // namespace baton::relay
