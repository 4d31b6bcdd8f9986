#pragma once

// The production class of relay/look.h in every order of events: writers that draw their xid and
// their positions, commit, roll back or are prepared first; relays that look, publish, learn what
// the broker did, write marks and read the retry index; a relay that crashes, or is taken over
// while it is paused and goes on; a database that crashes, and one that is restored from a dump
// into a younger cluster. Writers of one aggregate wait for each other, as those of one database
// row do.
//
// In every state: no event is published that has not been committed, the first publication of each
// event comes behind those of all events of its aggregate that were committed before, no checkpoint
// shows a row that is neither SENT nor in the retry index, no owner reads a row twice by its looks,
// and without a fault nothing is published twice. From every state there is a way to the end, where
// every committed event is SENT, discarded, FAILED, or behind a FAILED one of its aggregate.

#include <string>
#include <vector>

#include "explore/explorer.h"

namespace baton::explore {

struct RelayWriter {
  std::string rows;         // the aggregates of its events, as in "aba"
  bool prepared = false;    // two-phase commit
  bool rolls_back = false;  // may
};

struct RelaySetting {
  std::string title;
  std::vector<RelayWriter> writers;
  int page = 10;  // rows
  int relay_crashes = 0;
  int take_overs = 0;  // while the owner lives on
  int database_crashes = 0;
  int restores = 0;
  int returns = 0;   // messages that the broker returns
  int refusals = 0;  // that a full queue refuses
  int unknowns = 0;  // whose confirm is lost
  int overdues = 0;  // whose confirm is waited for no longer
  int operator_actions = 0;
  int max_attempts = 2;
  bool skip_failed = false;
};

[[nodiscard]] std::vector<RelaySetting> relay_settings();
[[nodiscard]] Report explore_relay(const RelaySetting& setting);

}  // namespace baton::explore
