# A holder lets go of what is asked for although it has no more than its quota.
set(EXPLORES partitions)
set(FILE src/partitions/plan.cc)
set(REPLACE_1 [[if (surplus == 0) break;]])
set(WITH_1 [[]])
