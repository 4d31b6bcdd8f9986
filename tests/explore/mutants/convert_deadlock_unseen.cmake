# Two holders of one name may both wait to convert, for each other.
set(FILE src/core/hold.cc)
set(REPLACE_1 [[if (deadlock) return]])
set(WITH_1 [[if (deadlock && step.now < StoreTime{0}) return]])
