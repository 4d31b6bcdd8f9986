# What is left over belongs to nobody.
set(EXPLORES partitions)
set(FILE src/partitions/plan.cc)
set(REPLACE_1 [[(rank < count % members ? 1 : 0)]])
set(WITH_1 [[(rank < members ? 0 : 1)]])
