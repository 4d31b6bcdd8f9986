#pragma once

// An ordered consumer: several events of one aggregate, in the order in which the relay published
// them, on the production decisions of inbox/decision.h and the order of inbox/delivery_progress.h.
// Two replicas and a queue with a single active consumer that delivers again in its order: a
// replica that lost its connection is a zombie, and goes on with all that it has in hand beside the
// next active one; processes die at every step, retries may be due at any moment, claims are
// overtaken, operators redrive and discard, and an event of a later version is DEAD at once.
//
// In every state, besides what consumer_world.h holds of one event: no handler begins, and no
// effect is committed, before all earlier events of the aggregate are settled for good. From every
// state there is a way to the end, where nothing waits but behind a DEAD event.

#include <string>
#include <vector>

#include "explore/explorer.h"

namespace baton::explore {

struct OrderedSetting {
  std::string title;
  int events = 2;
  int crashes = 0;
  int disconnects = 0;
  int duplicates = 0;  // that the relay sends
  int redrives = 0;
  int discards = 0;
  int failures = 0;  // of handlers
  int buried = -1;   // this event is of a later version, until it is redriven
};

[[nodiscard]] std::vector<OrderedSetting> ordered_settings();
[[nodiscard]] Report explore_ordered(const OrderedSetting& setting);

}  // namespace baton::explore
