# A claim is known by the number of its attempt.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[{.status = Status::retry, .retries = retries, .claim = claim}]])
set(WITH_1 [[{.status = Status::retry, .retries = retries, .claim = claim > 0 ? retries : 0}]])
