# A probe gives its attempt back, however long its event has been failing.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[  return attempt.probe && attempt.in_trouble_for < limits.breaker_patience;]])
set(WITH_1 [[  return attempt.probe && limits.breaker_patience >= Millis(0);]])
