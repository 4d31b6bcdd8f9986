# After a restore into another cluster the old xids are compared with its snapshots.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[return {.from = {}, .restamp = true};]])
set(WITH_1 [[return {.from = {}, .restamp = false};]])
