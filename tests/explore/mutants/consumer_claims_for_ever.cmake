# Claims a retry whose attempts are used up.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[  if (row.retries >= limits.max_retries && !held) return give_up(row);
]])
set(WITH_1 [[]])
