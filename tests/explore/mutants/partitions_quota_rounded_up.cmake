# The quotas add up to more than there is.
set(EXPLORES partitions)
set(FILE src/partitions/plan.cc)
set(REPLACE_1 [[(rank < count % members ? 1 : 0)]])
set(WITH_1 [[(rank < members && count % members != 0 ? 1 : 0)]])
