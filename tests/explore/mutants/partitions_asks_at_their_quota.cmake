# Waits for partitions of holders that have no more than their quota.
set(EXPLORES partitions)
set(FILE src/partitions/plan.cc)
set(REPLACE_1 [[return has - std::min(has, quota_of(node));]])
set(WITH_1 [[return has;]])
