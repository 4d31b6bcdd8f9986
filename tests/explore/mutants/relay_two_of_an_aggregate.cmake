# Publishes the next event of an aggregate although its head waits in the retry index.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[if (look != 0 && held_.contains(its.aggregate)) {]])
set(WITH_1 [[if (false) {]])
