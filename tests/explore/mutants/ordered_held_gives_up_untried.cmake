# A HELD event counts as tried.
set(EXPLORES ordered)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[const int retries = held ? row.retries : row.retries + 1;]])
set(WITH_1 [[const int retries = held ? row.retries - 1 : row.retries + 1;]])
