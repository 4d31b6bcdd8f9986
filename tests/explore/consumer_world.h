#pragma once

// The production decisions of inbox/decision.h and the order of inbox/delivery_progress.h in every
// order of events: two replicas of a consumer and a broker that redelivers at any time, so that a
// replica which lost its connection goes on with what it has in hand; processes that die, and
// commits whose answer is lost, at every step; handlers and hooks that fail; a breaker's probes;
// operators that redrive and discard; what the broker itself gives up on; retention. A retry may be
// due at any moment, also while its handler runs. In one world no handler ever succeeds, and every
// retry is the probe of a breaker that therefore stays open.
//
// In every state: no event has two effects, is given up twice, is done and compensated, or was
// tried more often than allowed; a DEAD one had its hook; both tables agree; and an event that the
// ledger does not know is on its way. A probe uses an attempt only when the patience is over. From
// every state there is a way to the end.

#include <string>
#include <vector>

#include "explore/explorer.h"

namespace baton::explore {

struct ConsumerSetting {
  std::string title;
  int crashes = 0;
  int disconnects = 0;   // of a replica from the broker
  int doubts = 0;        // commits whose answer is lost
  int duplicates = 0;    // that the relay sends
  int dead_letters = 0;  // of the broker
  int redrives = 0;
  int discards = 0;
  int hook_failures = 0;
  int probes = 0;         // that fail while there is patience
  int late_probes = 0;    // that fail later
  int forgotten = 0;      // rows of the ledger that age out
  bool hopeless = false;  // no handler succeeds, and all retries are probes
};

[[nodiscard]] std::vector<ConsumerSetting> consumer_settings();
[[nodiscard]] Report explore_consumer(const ConsumerSetting& setting);

}  // namespace baton::explore
