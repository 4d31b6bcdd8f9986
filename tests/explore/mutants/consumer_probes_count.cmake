# A probe uses an attempt at once, also if what all events need is away.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[  return attempt.probe && attempt.in_trouble_for < limits.breaker_patience;]])
set(WITH_1 [[  return attempt.probe && attempt.in_trouble_for < limits.breaker_patience && false;]])
