# A newcomer that suits the holders is granted at once, past every waiter.
set(FILE src/core/acquire.cc)
set(REPLACE_1 [[own != nullptr ? own->turn : kLastTurn]])
set(WITH_1 [[own != nullptr ? own->turn : 0]])
