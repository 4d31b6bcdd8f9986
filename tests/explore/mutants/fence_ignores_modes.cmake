# Every newer token overtakes, also that of a holder that may stand beside the older one.
set(FILE src/core/fence.cc)
set(REPLACE_1 [[ && !compatible(newer.mode, older.mode)]])
set(WITH_1 [[]])
