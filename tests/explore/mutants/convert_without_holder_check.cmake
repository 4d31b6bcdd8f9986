# A holder becomes exclusive beside the others.
set(FILE src/core/hold.cc)
set(REPLACE_1 [[    blockers.waiters.clear();]])
set(WITH_1 [[    blockers = {};]])
