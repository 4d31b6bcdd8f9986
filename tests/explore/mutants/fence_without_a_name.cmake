# A fence is not shown the last name or ancestor of a lease.
set(FILE src/core/fence.cc)
set(REPLACE_1 [[i < targets.size(); ++i) {]])
set(WITH_1 [[i < targets.size(); ++i) {
    if (i > 0 && i + 1 == targets.size()) break;]])
