# A promoted waiter that never comes keeps the lock for a day.
set(FILE src/core/settle.cc)
set(REPLACE_1 [[const StoreTime handoff = waiter.handoff;]])
set(WITH_1 [[const StoreTime handoff = std::chrono::hours(24);]])
