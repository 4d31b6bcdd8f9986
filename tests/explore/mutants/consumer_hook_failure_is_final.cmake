# An event whose hook failed is DEAD all the same.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[  // Past the limit it counts how often the hook has failed.]])
set(WITH_1 [[  if (times >= 0) return put(Outcome::dead, {.status = Status::dead, .retries = row->retries, .claim = claim + 1});]])
