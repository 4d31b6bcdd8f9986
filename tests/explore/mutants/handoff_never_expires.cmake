# A promoted waiter that never comes keeps the lock for a day.
set(FILE src/core/settle.cc)
set(REPLACE_1 [[const StoreTime claim_within = waiter.claim_within;]])
set(WITH_1 [[const StoreTime claim_within = std::chrono::hours(24);]])
