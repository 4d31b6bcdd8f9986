# A tombstone is kept for a day, whatever its time.
set(FILE src/core/end.cc)
set(REPLACE_1 [[step.now + StoreTime(request.tombstone_ttl)]])
set(WITH_1 [[step.now + StoreTime(std::chrono::hours(24))]])
