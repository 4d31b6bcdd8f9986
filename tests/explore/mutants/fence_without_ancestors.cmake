# A fence is not shown the ancestors of the names of a lease.
set(FILE src/core/fence.cc)
set(REPLACE_1 [[i < targets.size(); ++i) {]])
set(WITH_1 [[i < targets.size(); ++i) {
    if (targets[i].mode == Mode::IX || targets[i].mode == Mode::IS) continue;]])
