# A HELD head waits for somebody to release it.
set(EXPLORES ordered)
set(FILE src/inbox/decision.cc)
set(REPLACE_1 [[if (row.status != Status::retry && !held) return moot();]])
set(WITH_1 [[if (row.status != Status::retry) return moot();]])
