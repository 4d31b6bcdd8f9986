# What its rightful member does not take stays free.
set(EXPLORES partitions)
set(FILE src/partitions/plan.cc)
set(REPLACE_1 [[} else if (seen.free_for < kFreeForAnyone) {]])
set(WITH_1 [[} else {]])
