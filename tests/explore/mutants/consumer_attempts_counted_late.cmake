# An attempt is counted when it has failed, not before it starts.
set(EXPLORES consumer)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[const int retries = held ? row.retries : row.retries + 1;]])
set(WITH_1 [[const int retries = row.retries;]])
set(REPLACE_2 [[return try_again(row->retries, claim + 1, limits.delay_before(row->retries));]])
set(WITH_2 [[return try_again(row->retries + 1, claim + 1, limits.delay_before(row->retries));]])
