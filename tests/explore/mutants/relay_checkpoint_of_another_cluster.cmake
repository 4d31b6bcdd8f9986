# Goes on from the checkpoint of another cluster.
set(EXPLORES relay)
set(FILE src/relay/look.cc)
set(REPLACE_1 [[if (saved_by == cluster && seen.xmax <= xmax) return {.from = seen};]])
set(WITH_1 [[if (!saved_by.empty() || !cluster.empty() || xmax != 0) return {.from = seen};]])
