#include "relay/wakeup.h"

#include <algorithm>

namespace baton::relay {

void WakeUp::looked(bool found) {
  if (found) pause_ = Millis(1);
  if (holds_lock_) {
    step_ = found ? Step::unlock : Step::sleep;
  } else {
    step_ = found ? Step::look : Step::lock;
  }
}

void WakeUp::locked(bool got) {
  holds_lock_ = got;
  if (got) {
    step_ = Step::look;
  } else {
    pause_ = std::min(pause_ * 2, kMaxPause);
    step_ = Step::pause;
  }
}

void WakeUp::unlocked() {
  holds_lock_ = false;
  pause_ = Millis(1);
  step_ = Step::look;
}

}  // namespace baton::relay
