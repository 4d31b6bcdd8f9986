# A dead letter of the broker is DEAD at once.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[return put(Outcome::retrying, {.status = Status::retry});]])
set(WITH_1 [[return put(Outcome::dead, {.status = Status::dead});]])
