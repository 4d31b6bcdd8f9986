# A promoted waiter is not told, and comes for its grant only by chance.
set(FILE src/core/settle.cc)
set(REPLACE_1 [[    effects.wakes.push_back({holder.channel, holder.grant});
]])
set(WITH_1 [[]])
