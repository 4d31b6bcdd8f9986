# What a member has had for longest moves first.
set(EXPLORES partitions)
set(FILE src/partitions/plan.cc)
set(REPLACE_1 [[.token > view_.partitions[b].token]])
set(WITH_1 [[.token < view_.partitions[b].token]])
