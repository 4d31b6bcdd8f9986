# An acquire that arrives after it was cancelled takes effect.
set(FILE src/core/acquire.cc)
set(REPLACE_1 [[if (entombed(step)) return]])
set(WITH_1 [[if (entombed(step) && step.now < StoreTime{0}) return]])
