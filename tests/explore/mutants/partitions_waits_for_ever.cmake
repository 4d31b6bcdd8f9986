# A wait that its holder will not serve is kept.
set(EXPLORES partitions)
set(FILE src/partitions/plan.cc)
set(REPLACE_1 [[const bool served = !others || asked_of_[seen.holder] <= excess_of(seen.holder);]])
set(WITH_1 [[const bool served = true;]])
