# Goes on from the checkpoint of another cluster.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[if (saved_by == cluster) return {.from = seen};]])
set(WITH_1 [[if (!saved_by.empty() || !cluster.empty()) return {.from = seen};]])
