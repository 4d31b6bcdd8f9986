# A fence is shown only the first name of a lease.
set(FILE src/core/fence.cc)
set(REPLACE_1 [[i < targets.size(); ++i]])
set(WITH_1 [[i < 1; ++i]])
