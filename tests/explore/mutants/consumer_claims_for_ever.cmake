# Claims a retry whose attempts are used up.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[  if (row.retries >= limits.last_retry() && !held) {]])
set(WITH_1 [[  if (false) {]])
