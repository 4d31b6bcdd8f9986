# A fence is not shown the ancestors of the names of a lease.
set(FILE src/core/fence.cc)
set(REPLACE_1 [[i < asks.size(); ++i) {]])
set(WITH_1 [[i < asks.size(); ++i) {
    if (asks[i].mode == Mode::IX || asks[i].mode == Mode::IS) continue;]])
