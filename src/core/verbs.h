#pragma once

// The implementation of apply(), verb by verb. Only src/core includes this.

#include "core/settle.h"

namespace baton::core::verbs {

// One request in progress: the table, the states of its targets in their order, and the time.
struct Step {
  LockTable& table;
  const Request& request;
  StoreTime now;
  Effects& effects;
  std::vector<NameState*> states;

  void settle_all() const {
    for (NameState* state : states) settle(table, *state, now, effects);
  }
};

// acquire.cc
Reply acquire(Step& step);
Reply claim(Step& step);

// hold.cc
Reply renew(Step& step);
Reply convert(Step& step);

// end.cc
Reply release(Step& step);
Reply cancel(Step& step);
Reply break_holders(Step& step);

// Shared by several verbs.
Reply outcome(Outcome outcome, std::string message = {});

// A token for each target, and the note as it was found.
Reply granted(const Step& step, Note found);

// Every state of the request has a live holder of its grant that may go on: not parked, not
// revoked. Else why not.
std::optional<std::string> not_holding(const Step& step);

// Expires a full TTL from now, unless it already expires later.
void extend(Step& step, NameState& state, Holder& holder);

void make_change(NameState& state, const NoteChange& change, Effects& effects);

}  // namespace baton::core::verbs
