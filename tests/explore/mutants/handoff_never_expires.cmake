# A promoted waiter that never comes keeps the lock for a day.
set(FILE src/core/settle.cc)
set(REPLACE_1 [[holder.expires = now + waiter.handoff;]])
set(WITH_1 [[holder.expires = now + std::chrono::hours(24);]])
