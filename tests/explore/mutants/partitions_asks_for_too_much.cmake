# A member asks for all that is above some quota.
set(EXPLORES partitions)
set(FILE src/partitions/plan.cc)
set(REPLACE_1 [[      if (missing_ == 0) break;
]])
set(WITH_1 [[]])
